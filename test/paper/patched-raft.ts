/**
 * Copies of raft with tight limits or with one rule broken, to show that the checker sees it.
 *
 * Owns: the list of plants (a piece of source and what replaces it) and the patched build in a
 * folder of its own. Never: touches the sources. A plant whose source is no longer there is an
 * error: it has to be planted anew. Used by: planted-bugs.test.ts, random-safety.test.ts.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import type { Raft } from '../../src/core/raft/raft.js';
import { projectFile } from '../gate/paths.js';

const RAFT_FOLDER = 'core/raft';
const NEEDED = ['limits.ts', 'collections/assert.ts', 'collections/prng.ts'];

export interface Plant {
  readonly name: string;
  /** File in src/core/raft. */
  readonly file: string;
  /** A piece of it that stands there exactly once. */
  readonly find: string;
  readonly replace: string;
  /** A seed that caught it once, to begin with; 1 when absent. */
  readonly seed?: number;
}

export const PLANTS: readonly Plant[] = [
  {
    name: '§5.4.2: an entry of an earlier term is committed by counting',
    file: 'replication.ts',
    find: 'if (index <= state.commitIndex || state.log.termAt(index) !== state.term) return;',
    replace: 'if (index <= state.commitIndex) return;',
  },
  {
    name: '§5.2: a vote is not stored, so a restart may vote again',
    file: 'election.ts',
    find: 'state.votedFor = message.from;\n    saveHardState(state);',
    replace: 'state.votedFor = message.from;',
  },
  {
    name: '§5.2: a vote leaves before it is on disk',
    file: 'election.ts',
    find: '  }\n  sendWhenDurable(state, reply);',
    replace: '  }\n  sendNow(state, reply);',
  },
  {
    name: '§5.2: votes are asked for before the own vote is on disk',
    file: 'election.ts',
    find: 'if (kind === MessageKind.Vote) sendWhenDurable(state, message);\n    else sendNow',
    replace: 'sendNow',
    seed: 107,
  },
  {
    name: '§5.2: a vote is forgotten within its term',
    file: 'election.ts',
    find: '  if (term > state.term) {\n    state.term = term;',
    replace: '  if (term >= state.term) {\n    state.term = term;',
  },
  {
    name: '§5.4.1: votes go to logs that are behind',
    file: 'election.ts',
    find: 'mayVote && state.log.isUpToDate(message.index, message.logTerm)',
    replace: 'mayVote',
  },
  {
    name: '§5.3: an entry is acknowledged before it is on disk',
    file: 'replication.ts',
    find: 'AppendReply, to);\n  reply.index = index;\n  sendWhenDurable(state, reply);',
    replace: 'AppendReply, to);\n  reply.index = index;\n  sendNow(state, reply);',
  },
  {
    name: '§5.3: an append that is overtaken cuts what follows it',
    file: 'replication.ts',
    find: 'if (log.termAt(entry.index) === entry.term) continue;',
    replace: '',
  },
  {
    name: '§5.3: an append may follow any term',
    file: 'log.ts',
    find: 'return this.termAt(index) === term;',
    replace: 'return true;',
  },
  {
    name: '§5.3: a heartbeat commits past what the follower is known to hold',
    file: 'sending.ts',
    find: 'Math.min(progress.matchIndex, state.commitIndex)',
    replace: 'state.commitIndex',
  },
  {
    name: 'thesis §10.2.1: the leader counts itself before its own disk',
    file: 'replication.ts',
    find: '? state.durableIndex',
    replace: '? state.log.lastIndex',
  },
  {
    name: 'thesis §10.2.1: an old completion makes entries durable that replaced its own',
    file: 'replication.ts',
    find: 'if (pending.lastIndex >= from) pending.lastIndex = from - 1;',
    replace: '',
  },
  {
    name: 'thesis §6.4: a leader answers reads without asking a majority',
    file: 'read-index.ts',
    find: 'return confirmed >= majorityOf(state.members.voters.length);',
    replace: 'return true;',
  },
  {
    name: 'thesis §6.4: a confirmation of an earlier round counts for later ones',
    file: 'read-index.ts',
    find: 'if (waiting.round > round) break;',
    replace: '',
    seed: 3239,
  },
  {
    name: 'thesis §6.4: forwarded reads are numbered from 1 in every life',
    file: 'state.ts',
    find: 'prng.nextU32() * FORWARDED_PER_LIFE',
    replace: '0',
    seed: 1150,
  },
  {
    name: 'thesis §6.4: a leader answers reads before its own term has a commit',
    file: 'read-index.ts',
    find: 'if (!state.isTermOpen || state.commitIndex < state.termStartIndex) {',
    replace: 'if (!state.isTermOpen) {',
  },
  {
    name: 'thesis §4.1: a change is in force on its leader alone until it is committed',
    file: 'replication.ts',
    find: '    noteAppended(state, entry);\n',
    replace: '',
  },
  {
    name: 'thesis §4.1: two voters come or go in one change',
    file: 'membership.ts',
    find: 'come + gone > 1',
    replace: 'come + gone > 2',
  },
  {
    name: 'thesis §4.1: a change is proposed while another is not committed',
    file: 'membership.ts',
    find: 'if (membershipIndex(state) > state.commitIndex) return ChangeRefusal.Pending;',
    replace: '',
  },
  {
    name: 'thesis §4.1: a change is proposed before the own term has a commit',
    file: 'membership.ts',
    find: 'state.commitIndex >= state.termStartIndex;',
    replace: 'true;',
    seed: 43_442,
  },
  {
    name: 'thesis §4.1: a change that is cut from the log stays in force',
    file: 'replication.ts',
    find: '  noteTruncated(state, from);\n',
    replace: '',
  },
];

function transpile(text: string): string {
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
    },
  });
  return outputText;
}

/** Replaces a piece of source that stands there exactly once. */
function replaceOnce(text: string, find: string, replace: string, name: string): string {
  const pieces = text.split(find);
  if (pieces.length !== 2) {
    throw new Error(`plant anew: ${name} finds its source ${pieces.length - 1} times`);
  }
  return pieces.join(replace);
}

/** Bounds so small that windows close and appends split, which takes megabytes otherwise. */
export const TIGHT_LIMITS: Readonly<Record<string, number>> = {
  INFLIGHT_APPENDS_MAX: 2,
  APPEND_ENTRIES_MAX: 1,
};

function tighten(text: string, limits: Readonly<Record<string, number>>): string {
  let tight = text;
  for (const [name, value] of Object.entries(limits)) {
    const found = new RegExp(`export const ${name} = .*;`).exec(tight)?.[0] ?? name;
    tight = replaceOnce(tight, found, `export const ${name} = ${value};`, name);
  }
  return tight;
}

/** Builds raft with other limits and, if given, a plant. */
export async function buildRaft(
  limits: Readonly<Record<string, number>>,
  plant?: Plant,
): Promise<typeof Raft> {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-raft-'));
  try {
    writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
    const raftFiles = readdirSync(projectFile(`src/${RAFT_FOLDER}`)).filter((name) =>
      name.endsWith('.ts'),
    );
    for (const name of [...NEEDED, ...raftFiles.map((file) => `${RAFT_FOLDER}/${file}`)]) {
      let text = readFileSync(projectFile(`src/${name}`), 'utf8');
      if (name === 'limits.ts') text = tighten(text, limits);
      if (plant !== undefined && name === `${RAFT_FOLDER}/${plant.file}`) {
        text = replaceOnce(text, plant.find, plant.replace, plant.name);
      }
      const target = path.join(folder, name.replace(/\.ts$/, '.js'));
      mkdirSync(path.dirname(target), { recursive: true });
      writeFileSync(target, transpile(text));
    }
    const url = pathToFileURL(path.join(folder, RAFT_FOLDER, 'raft.js')).href;
    const module = (await import(url)) as { Raft: typeof Raft };
    return module.Raft;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
