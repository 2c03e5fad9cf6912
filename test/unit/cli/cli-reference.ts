/**
 * Renders the part of docs/CLI.md that is generated from the command table and the exit codes.
 *
 * Owns: its form. Used by: docs.test.ts, which compares, and writes with HOLDFAST_WRITE_DOCS=1.
 */
import { type CommandSpec, JSON_OPTION, type OptionSpec } from '../../../src/cli/command.js';
import { CLI_CODES, EXIT_MEANINGS, EXIT_SIGNAL_BASE } from '../../../src/cli/exit-codes.js';

import { usageOf } from '../../../src/cli/program.js';

/** Everything from this line on is generated. */
export const GENERATED_MARK = '<!-- From here on: generated from src/cli. -->';

function optionRow(option: OptionSpec): string {
  const value = option.value === '' ? '' : ` ${option.value}`;
  const suffix = option.defaultText === undefined ? '' : ` (default: ${option.defaultText})`;
  return `| \`--${option.name}${value}\` | ${option.summary}${suffix} |`;
}

function commandSection(spec: CommandSpec): string {
  const lines = [`### holdfast ${spec.path.join(' ')}`, '', `\`holdfast ${usageOf(spec)}\``, ''];
  lines.push(`${spec.summary.charAt(0).toUpperCase()}${spec.summary.slice(1)}.`, '');
  if (spec.details !== undefined) lines.push(spec.details, '');
  lines.push('| option | meaning |', '|---|---|');
  for (const option of [...spec.options, JSON_OPTION]) lines.push(optionRow(option));
  lines.push('', '```');
  for (const example of spec.examples) {
    lines.push(`# ${example.says}`, `holdfast ${example.words}`);
  }
  lines.push('```', '');
  return lines.join('\n');
}

function exitSection(): string {
  const lines = ['## Exit statuses', '', '| status | meaning |', '|---|---|'];
  for (const [status, meaning] of Object.entries(EXIT_MEANINGS)) {
    lines.push(`| ${status} | ${meaning} |`);
  }
  lines.push(
    `| ${EXIT_SIGNAL_BASE} + n | Ended by signal n, or \`lock\` got it before its command began. |`,
  );
  return `${lines.join('\n')}\n`;
}

function codeSection(): string {
  const lines = ['## Codes of its own', ''];
  lines.push('Every other code in a message is one of [ERRORS](ERRORS.md).', '');
  lines.push('| code | status | meaning |', '|---|---|---|');
  for (const [code, { status, meaning }] of Object.entries(CLI_CODES)) {
    lines.push(`| \`${code}\` | ${status} | ${meaning} |`);
  }
  return `${lines.join('\n')}\n`;
}

/** The generated part, the mark included. */
export function renderReference(commands: readonly CommandSpec[]): string {
  const tables = [exitSection(), codeSection()];
  const sections = [GENERATED_MARK, '', ...tables, '## Commands', ''];
  return `${sections.join('\n')}\n${commands.map(commandSection).join('\n')}`;
}
