/**
 * Turns the command table into a parser, runs what was asked for, and gives the exit status.
 *
 * Owns: help, unknown words and options (refused, never ignored), and how an error becomes a line
 * and a status. Never: what a command does. The only file that imports commander.
 * Used by: main.ts, tests.
 */
import { Command, CommanderError, Option } from 'commander';
import type { ErrorDetails } from '../client/errors.js';
import { OptionError } from '../server/options.js';
import {
  type CommandInput,
  type CommandSpec,
  type ExampleSpec,
  JSON_OPTION,
  type OptionSpec,
  type Output,
} from './command.js';
import { CliError, ExitCode, exitCodeOf } from './exit-codes.js';
import { ProcessOutput, type TextSink } from './output.js';

/** What the program needs of the process that it runs in. */
export interface ProgramHost {
  readonly standardOutput: TextSink;
  readonly standardError: TextSink;
  readonly version: string;
}

const GROUP_SUMMARIES: Readonly<Record<string, string>> = {
  session: 'sessions: a presence that many leases can share',
  admin: 'what operators do: free a lock by force, disable and enable, end a session',
  guard: 'guards: the check of fencing tokens at a resource',
};

/** An error that says by a stable code what went wrong. */
interface CodedError {
  readonly code: string;
  readonly message: string;
  readonly details?: unknown;
  readonly outcome?: unknown;
  readonly retryable?: unknown;
}

function optionFlags(option: OptionSpec): string {
  return option.kind === 'flag' ? `--${option.name}` : `--${option.name} <${option.value}>`;
}

function collect(text: string, earlier: readonly string[] | undefined): string[] {
  return [...(earlier ?? []), text];
}

function toOption(spec: OptionSpec): Option {
  const suffix = spec.defaultText === undefined ? '' : ` (default: ${spec.defaultText})`;
  const option = new Option(optionFlags(spec), spec.summary + suffix);
  if (spec.kind === 'list') option.argParser(collect);
  return option;
}

function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

function exampleLines(examples: readonly ExampleSpec[]): string {
  const lines = ['', 'Examples:'];
  for (const example of examples) {
    lines.push(`  # ${example.says}`, `  holdfast ${example.words}`);
  }
  return lines.join('\n');
}

/** The words after `holdfast`, as help and docs/CLI.md show them. */
export function usageOf(spec: CommandSpec): string {
  const words = spec.arguments.map((argument) => {
    const word = argument.isVariadic === true ? `-- ${argument.name}…` : argument.name;
    return argument.isRequired ? word : `[${word}]`;
  });
  return [...spec.path, '[options]', ...words].join(' ');
}

/** What commander says, without its prefix; a suggestion stays on the same line. */
function wordsOf(error: CommanderError): string {
  if (error.code === 'commander.help') return 'name a command';
  return error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
}

/** True when `--json` is among the words for `holdfast`, not for the command it runs. */
function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end < 0 ? words.length : end).includes(`--${JSON_OPTION.name}`);
}

/** Builds and runs; one instance a process. */
export class Program {
  private readonly root: Command;
  private status: number = ExitCode.Ok;
  /** What commander would have written: the help, when no command is named. */
  private said = '';

  constructor(
    private readonly commands: readonly CommandSpec[],
    private readonly host: ProgramHost,
  ) {
    this.root = this.newCommand('holdfast')
      .description('A distributed lock service: locks with leases and fencing tokens.')
      .version(host.version, '--version', 'print the version');
    this.root.addHelpText(
      'after',
      '\nEvery command has --help with examples. Exit statuses are in docs/CLI.md.',
    );
    this.root.helpCommand('help [command]', 'print the help of a command');
    for (const spec of commands) this.add(spec);
  }

  /** Runs what `words` (without node and script) name. Resolves with the exit status. */
  async run(words: readonly string[]): Promise<number> {
    this.status = ExitCode.Ok;
    this.said = '';
    try {
      await this.root.parseAsync([...words], { from: 'user' });
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      // Help and version are successes.
      if (error.exitCode === 0) return ExitCode.Ok;
      this.explainUsage(error, words);
      return ExitCode.Usage;
    }
    return this.status;
  }

  /** A command line that cannot be understood: why, and the way to the help. */
  private explainUsage(error: CommanderError, words: readonly string[]): void {
    const named = words.filter((word) => !word.startsWith('-'));
    const spec = this.commands.find(({ path }) => path.every((word, at) => named[at] === word));
    const name = ['holdfast', ...(spec?.path ?? [])].join(' ');
    const usage = spec === undefined ? '' : `; usage: holdfast ${usageOf(spec)}`;
    const message = `${wordsOf(error)}${usage}; see ${name} --help`;
    const { standardOutput, standardError } = this.host;
    const output = new ProcessOutput(asksForJson(words), standardOutput, standardError);
    if (error.code === 'commander.help' && !output.isJson) standardError.write(`${this.said}\n`);
    output.failure('USAGE', message, {});
  }

  private newCommand(name: string): Command {
    return new Command(name)
      .exitOverride()
      .allowExcessArguments(false)
      .showSuggestionAfterError(true)
      .helpCommand(false)
      .configureOutput({
        writeOut: (text) => this.host.standardOutput.write(text),
        // What is wrong is said once, by explainUsage, in words or as JSON.
        writeErr: (text) => {
          this.said += text;
        },
      })
      .addOption(toOption(JSON_OPTION));
  }

  private add(spec: CommandSpec): void {
    const name = spec.path.at(-1) ?? '';
    const command = this.newCommand(name).summary(spec.summary);
    command.usage(usageOf(spec).slice(spec.path.join(' ').length + 1));
    const details = spec.details === undefined ? '' : `\n\n${spec.details}`;
    command.description(`${capitalized(spec.summary)}.${details}`);
    for (const argument of spec.arguments) {
      const word = argument.isVariadic === true ? `${argument.name}...` : argument.name;
      command.argument(argument.isRequired ? `<${word}>` : `[${word}]`, argument.summary);
    }
    for (const option of spec.options) command.addOption(toOption(option));
    command.addHelpText('after', exampleLines(spec.examples));
    command.action(async (...given: unknown[]) => {
      const words = given.slice(0, spec.arguments.length).flat();
      const isText = (word: unknown): word is string => typeof word === 'string';
      await this.runCommand(spec, words.filter(isText), command.optsWithGlobals());
    });
    this.parentOf(spec).addCommand(command);
  }

  /** The group that a command of two words belongs to, made when it is first needed. */
  private parentOf(spec: CommandSpec): Command {
    const group = spec.path.length > 1 ? spec.path[0] : undefined;
    if (group === undefined) return this.root;
    const known = this.root.commands.find((command) => command.name() === group);
    if (known !== undefined) return known;
    const made = this.newCommand(group).description(GROUP_SUMMARIES[group] ?? group);
    const inGroup = this.commands.filter((each) => each.path[0] === group);
    made.addHelpText('after', exampleLines(inGroup.flatMap((each) => each.examples)));
    this.root.addCommand(made);
    return made;
  }

  private async runCommand(
    spec: CommandSpec,
    words: readonly string[],
    values: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { standardOutput, standardError } = this.host;
    const output = new ProcessOutput(values['json'] === true, standardOutput, standardError);
    const input: CommandInput = {
      words,
      output,
      text: (name) => values[camelCase(name)] as string | undefined,
      list: (name) => (values[camelCase(name)] as readonly string[] | undefined) ?? [],
      flag: (name) => values[camelCase(name)] === true,
    };
    try {
      this.status = await spec.run(input);
    } catch (error) {
      this.status = reportFailure(error, output);
    }
  }
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function isCoded(error: unknown): error is CodedError {
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}

/** What an error of the cluster knows beside its code, by the names that JSON has for it. */
function detailsJson(given: unknown): Record<string, unknown> {
  const { field, holder, revision, silent } = (given ?? {}) as ErrorDetails;
  const details: Record<string, unknown> = {};
  if (field !== undefined) details['field'] = field;
  if (revision !== undefined) details['revision'] = revision;
  if (silent !== undefined) details['unreachable'] = silent;
  if (holder !== undefined && holder.token > 0) {
    details['holder'] = {
      fencing_token: holder.token,
      since: holder.sinceMs,
      expires_at: holder.deadlineMs,
      expires_in_ms: holder.endsInMs,
      principal: holder.principal,
      metadata: holder.metadata === null ? null : new TextDecoder().decode(holder.metadata),
    };
  }
  return details;
}

/** Says what failed and gives the status for it. A fault of the program shows its stack. */
export function reportFailure(error: unknown, output: Output): number {
  if (error instanceof OptionError) {
    output.failure(error.code, error.message, { option: error.option });
    return ExitCode.Usage;
  }
  if (error instanceof CliError) {
    output.failure(error.code, error.message, error.details);
    return exitCodeOf(error.code);
  }
  if (error instanceof Error && 'syscall' in error) {
    output.failure('SYSTEM', error.message, {});
    return exitCodeOf('SYSTEM');
  }
  if (isCoded(error)) {
    const details = detailsJson(error.details);
    if (error.outcome !== undefined) details['outcome'] = error.outcome;
    if (error.retryable !== undefined) details['retryable'] = error.retryable;
    output.failure(error.code, error.message, details);
    return exitCodeOf(error.code);
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  output.failure('FAULT', text, {});
  return ExitCode.Fault;
}
