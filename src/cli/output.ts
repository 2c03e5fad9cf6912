/**
 * What the CLI prints, for people or for programs.
 *
 * Owns: the two forms. Standard output carries results alone, so that it can be piped; everything
 * else goes to standard error. Never: colours or widths of a terminal. Used by: program.ts.
 */
import type { Output } from './command.js';

/** Where text goes; process.stdout and process.stderr in the program. */
export interface TextSink {
  write(text: string): unknown;
}

export class ProcessOutput implements Output {
  constructor(
    readonly isJson: boolean,
    private readonly standardOutput: TextSink,
    private readonly standardError: TextSink,
  ) {}

  result(value: unknown, lines: readonly string[]): void {
    if (this.isJson) this.standardOutput.write(`${JSON.stringify(value)}\n`);
    else for (const line of lines) this.standardOutput.write(`${line}\n`);
  }

  note(text: string): void {
    const line = this.isJson ? JSON.stringify({ remark: text }) : `holdfast: ${text}`;
    this.standardError.write(`${line}\n`);
  }

  failure(code: string, message: string, details: Readonly<Record<string, unknown>>): void {
    const line = this.isJson
      ? JSON.stringify({ error: { code, message, ...details } })
      : `holdfast: ${code}: ${message}`;
    this.standardError.write(`${line}\n`);
  }
}

/** Lines of a table: columns as wide as their longest cell, two blanks between them. */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return cells.join('  ').trimEnd();
  });
}
