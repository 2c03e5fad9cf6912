/**
 * The log of a node: one JSON object a line, with the node's id and an ISO time.
 *
 * Owns: levels, the names of the standing fields, what is never printed. Never: secrets, lease
 * ids, metadata (redacted by field name, in case a caller passes them by mistake).
 * The only file that imports pino. Used by: io, server, cli.
 */
import { pino, stdTimeFunctions } from 'pino';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields of one line beside the message; values must survive JSON. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What the rest of the product sees of a logger. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  fatal(fields: LogFields, message: string): void;
  /** True when a line of this level would be written: test before building a costly message. */
  isEnabled(level: LogLevel): boolean;
  /** A logger whose lines carry `fields` as well. */
  child(fields: LogFields): Logger;
}

/** Where lines go: anything with a write of one whole line. */
export interface LogSink {
  write(line: string): unknown;
}

const REDACTED_FIELDS = ['secret', 'leaseId', 'metadata', '*.secret', '*.leaseId', '*.metadata'];

type Base = ReturnType<typeof pino>;

class PinoLogger implements Logger {
  constructor(private readonly base: Base) {}

  debug(fields: LogFields, message: string): void {
    this.base.debug(fields, message);
  }

  info(fields: LogFields, message: string): void {
    this.base.info(fields, message);
  }

  warn(fields: LogFields, message: string): void {
    this.base.warn(fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.base.error(fields, message);
  }

  fatal(fields: LogFields, message: string): void {
    this.base.fatal(fields, message);
  }

  isEnabled(level: LogLevel): boolean {
    return level !== 'silent' && this.base.isLevelEnabled(level);
  }

  child(fields: LogFields): Logger {
    return new PinoLogger(this.base.child(fields));
  }
}

/**
 * Makes a logger.
 *
 * @param level the least severe level that is written; 'silent' writes nothing.
 * @param fields standing fields of every line, such as { node: 3 }.
 * @param sink where lines go. Default: standard output, written at once and in order, so that the
 *   last line before a crash is not lost.
 */
export function createLogger(level: LogLevel, fields: LogFields, sink?: LogSink): Logger {
  const options = {
    level,
    base: fields,
    messageKey: 'message',
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED_FIELDS, censor: '[redacted]' },
  };
  const stream = sink ?? standardOutput();
  return new PinoLogger(pino(options, stream as { write(line: string): void }));
}

/** Synchronous standard output; a reader that went away must not take the node with it. */
function standardOutput(): LogSink {
  const stream = pino.destination({ fd: 1, sync: true });
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  return stream;
}

/** True when `text` names a level. */
export function isLogLevel(text: string): text is LogLevel {
  return (LOG_LEVELS as readonly string[]).includes(text);
}
