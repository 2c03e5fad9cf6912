/**
 * Every command of `holdfast`, in the order in which help and docs/CLI.md show them.
 *
 * Owns: the list. Never: a command, or what it does; each has a file beside this one.
 * Used by: main.ts, test/unit/cli.
 */
import type { CommandSpec } from '../command.js';
import { adminCommands } from './admin.js';
import { auditCommands } from './audit.js';
import { backupCommand } from './backup.js';
import { devCommand } from './dev.js';
import { drillCommand } from './drill.js';
import { electCommand } from './elect.js';
import { explainCommand } from './explain.js';
import { getCommand, listCommand } from './get.js';
import { guardCommands } from './guard.js';
import { guardProxyCommands } from './guard-proxy.js';
import { lockCommand } from './lock.js';
import { repairCommand } from './repair.js';
import { restoreCommand } from './restore.js';
import { serveCommand } from './serve.js';
import { sessionCommands } from './session.js';
import { statusCommand } from './status.js';
import { transferCommand } from './transfer.js';
import { unsafeRecoverCommand } from './unsafe-recover.js';
import { verifyCommand } from './verify.js';
import { watchCommand } from './watch.js';

export const COMMANDS: readonly CommandSpec[] = [
  devCommand,
  lockCommand,
  getCommand,
  listCommand,
  explainCommand,
  watchCommand,
  ...auditCommands,
  electCommand,
  statusCommand,
  verifyCommand,
  repairCommand,
  backupCommand,
  restoreCommand,
  unsafeRecoverCommand,
  transferCommand,
  ...sessionCommands,
  ...adminCommands,
  ...guardCommands,
  ...guardProxyCommands,
  drillCommand,
  serveCommand,
];
