/**
 * What a command of the CLI is: words it takes, help it gives, work it does.
 *
 * Owns: the shape of the command table, from which program.ts builds the parser and
 * test/unit/cli compares docs/CLI.md. Never: parsing (program.ts) or printing by itself (Output).
 * Used by: every file in commands/.
 */

/** One positional word. A variadic one is the last and takes all that follow. */
export interface ArgumentSpec {
  readonly name: string;
  readonly summary: string;
  readonly isRequired: boolean;
  readonly isVariadic?: boolean;
}

/** How an option's value is given: no value, one text, or one text each time it is named. */
export type OptionKind = 'flag' | 'text' | 'list';

export interface OptionSpec {
  /** Without the dashes: 'node-id'. */
  readonly name: string;
  readonly kind: OptionKind;
  /** What stands for the value in the help; '' for a flag. */
  readonly value: string;
  readonly summary: string;
  /** Said in the help; the command itself applies it. */
  readonly defaultText?: string;
}

export interface ExampleSpec {
  /** The words after `holdfast`. */
  readonly words: string;
  readonly says: string;
}

/** What a run of a command is given. */
export interface CommandInput {
  /** Positional words in order; those of a variadic argument follow the others. */
  readonly words: readonly string[];
  /** Text of an option, undefined when it was not given. */
  text(name: string): string | undefined;
  /** Every text of a list option. */
  list(name: string): readonly string[];
  /** True when a flag was given. */
  flag(name: string): boolean;
  readonly output: Output;
}

export interface CommandSpec {
  /** The words that name it: ['session', 'open']. */
  readonly path: readonly string[];
  readonly summary: string;
  /** Paragraphs of the help after the summary. */
  readonly details?: string;
  readonly arguments: readonly ArgumentSpec[];
  readonly options: readonly OptionSpec[];
  readonly examples: readonly ExampleSpec[];
  /** Resolves with the exit status; rejects with OptionError, HoldfastError or a fault. */
  run(input: CommandInput): Promise<number>;
}

/** Standard output and standard error, in words or as JSON. */
export interface Output {
  readonly isJson: boolean;
  /** The result: `value` as one JSON line, or `lines` as they are. */
  result(value: unknown, lines: readonly string[]): void;
  /** A remark that is neither result nor failure, on standard error: a line or a JSON object. */
  note(text: string): void;
  /** A failure, on standard error: a line, or a JSON object with the code. */
  failure(code: string, message: string, details: Readonly<Record<string, unknown>>): void;
}

/** Options that every command that talks to a cluster has. */
export const CLUSTER_OPTIONS: readonly OptionSpec[] = [
  {
    name: 'endpoints',
    kind: 'text',
    value: 'HOST:PORT,…',
    summary: 'client addresses of the nodes (or HOLDFAST_ENDPOINTS)',
    defaultText: '127.0.0.1:7401 to 7405',
  },
  {
    name: 'timeout',
    kind: 'text',
    value: 'TIME',
    summary: 'how long to try to reach the cluster; waiting for a lock is apart from it',
    defaultText: '10s',
  },
];

/** Every command has it. */
export const JSON_OPTION: OptionSpec = {
  name: 'json',
  kind: 'flag',
  value: '',
  summary: 'print results and failures as JSON',
};
