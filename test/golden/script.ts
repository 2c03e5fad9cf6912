/**
 * Runs golden scripts: a few commands, `----`, and what they are expected to tell, again and again.
 *
 * Owns: the commands (README.md in this folder lists them) and the form of the files. Never: a
 * rule of raft. Comments and blank lines between blocks stay as they are. Used by: golden.test.ts.
 */
import { type Effects, Role } from '../../src/core/raft/effects.js';
import { type Message, MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MIN } from '../../src/limits.js';
import { Cluster, type Observer, type TestNode } from '../paper/cluster.js';
import { commitWords, kindOf, messageWords, orderWords, roleWords, tableOf } from './wording.js';

const SEPARATOR = '----';

/** Runs a script and returns it with what it tells now. */
export function runScript(text: string): string {
  const script = new Script();
  const written: string[] = [];
  const lines = text.replace(/\n+$/, '').split('\n');
  let commands: string[] = [];
  let at = 0;
  for (; at < lines.length; at += 1) {
    const line = lines[at] as string;
    written.push(line);
    if (line !== SEPARATOR) {
      if (line !== '' && !line.startsWith('#')) commands.push(line);
      continue;
    }
    const told = commands.flatMap((command) => script.run(command));
    written.push(...(told.length > 0 ? told : ['nothing happens']));
    commands = [];
    while (at + 1 < lines.length && lines[at + 1] !== '') at += 1;
  }
  if (commands.length > 0) throw new Error(`no ${SEPARATOR} after: ${commands.join(', ')}`);
  return `${written.join('\n')}\n`;
}

/** Which messages a command means: `1>2`, `1>*`, `Append`, or several of them; all by default. */
function filterOf(words: readonly string[]): (message: Message) => boolean {
  const links = words.filter((word) => word.includes('>'));
  const kinds = words.filter((word) => !word.includes('>'));
  return (message) => {
    const { from, to } = message;
    const names = [`${from}>${to}`, `${from}>*`, `*>${to}`];
    const isLink = links.length === 0 || links.some((link) => names.includes(link));
    return isLink && (kinds.length === 0 || kinds.includes(kindOf(message)));
  };
}

class Script {
  private cluster = new Cluster({ voters: 1 });
  private told: string[] = [];
  private readonly roles = new Map<number, string>();
  private readonly commits = new Map<number, number>();

  /** Carries out one command and returns what it tells. */
  run(line: string): string[] {
    this.told = [];
    const words = line.split(' ');
    const isQuiet = words[0] === 'quietly';
    if (isQuiet) words.shift();
    const [name = '', ...rest] = words;
    const command = this.commands[name];
    if (command === undefined) throw new Error(`no such command: ${line}`);
    command(rest);
    return isQuiet ? [] : this.told;
  }

  private readonly commands: Record<string, (words: string[]) => void> = {
    cluster: (words) => this.found(Number(words[0]), Number(words[1] ?? 0)),
    campaign: (words) => this.cluster.campaign(Number(words[0])),
    elect: (words) => this.cluster.elect(Number(words[0])),
    tick: (words) => this.cluster.tick(Number(words[0]), Number(words[1])),
    run: (words) => this.cluster.run(Number(words[0])),
    deliver: (words) => void this.cluster.deliver(filterOf(words)),
    lose: (words) => void this.cluster.drop(filterOf(words)),
    disk: (words) => this.cluster.completeDisk(Number(words[0]), Number(words[1] ?? 1)),
    stabilize: () => this.cluster.stabilize(),
    propose: (words) => this.propose(Number(words[0]), words.slice(1).join(' ')),
    transfer: (words) => this.transfer(Number(words[0]), Number(words[1])),
    read: (words) => this.read(Number(words[0])),
    isolate: (words) => this.cluster.isolate(Number(words[0])),
    cut: (words) => {
      for (const word of words) this.cut(word);
    },
    heal: () => this.cluster.heal(),
    win: (words) => this.win(words.map(Number)),
    crash: (words) => {
      for (const word of words) this.cluster.crash(Number(word));
    },
    restart: (words) => {
      for (const word of words) this.cluster.restart(Number(word));
    },
    show: () => void this.told.push(...tableOf(this.cluster)),
    flight: () => void this.told.push(...this.cluster.inFlight.map(messageWords)),
  };

  private found(voters: number, learners: number): void {
    this.roles.clear();
    this.commits.clear();
    this.cluster = new Cluster({ voters, learners, observer: this.observer });
  }

  private cut(link: string): void {
    const [from, to] = link.split('>');
    this.cluster.cut(Number(from), Number(to));
  }

  /** The first of `group` campaigns and only the others hear it; what it then sends is lost. */
  private win(group: readonly number[]): void {
    const { cluster } = this;
    const candidate = group[0] as number;
    const isInside = ({ from, to }: Message): boolean => group.includes(from) && group.includes(to);
    const told = this.told;
    this.told = [];
    for (const id of group) if (id !== candidate) cluster.tick(id, ELECTION_TICKS_MIN);
    cluster.drop();
    // A first campaign may do no more than learn a later term.
    for (let attempts = 0; attempts < 2 && !this.leads(candidate); attempts += 1) {
      cluster.campaign(candidate);
      for (let steps = 0; steps < 10 && !this.leads(candidate); steps += 1) {
        cluster.deliver(isInside);
        for (const id of group) if (!this.leads(candidate)) cluster.completeDisk(id);
      }
    }
    cluster.drop();
    const outcome = this.leads(candidate) ? 'leads' : 'does not win; it is in';
    this.told = [...told, `${candidate} ${outcome} term ${cluster.raft(candidate).term}`];
  }

  private leads(id: number): boolean {
    return this.cluster.raft(id).role === Role.Leader;
  }

  private propose(id: number, text: string): void {
    if (this.cluster.propose(id, text) === 0) this.told.push(`${id} may not propose`);
  }

  private transfer(id: number, target: number): void {
    if (!this.cluster.transfer(id, target)) this.told.push(`${id} cannot begin that`);
  }

  private read(id: number): void {
    const context = this.cluster.read(id);
    this.told.unshift(`${id} asks for read ${context}`);
  }

  private readonly observer: Observer = {
    onTurn: (node, effects) => this.tellTurn(node, effects),
    onDelivered: (_, message) => {
      this.told.push(messageWords(message));
    },
    onDropped: (message) => {
      // A cut link loses a heartbeat every few ticks: that is no news.
      if (message.kind === MessageKind.Heartbeat) return;
      this.told.push(`${messageWords(message)} (lost)`);
    },
    onDurable: (node, order) => {
      this.told.push(`  ${node.id} has on disk: ${orderWords(order)}`);
    },
    onCrashed: (node) => this.tellRole(node),
    onStarted: (node) => {
      this.commits.set(node.id, node.raft?.commitIndex ?? 0);
      if (node.life > 1) this.tellRole(node);
      else this.roles.set(node.id, roleWords(node));
    },
  };

  private tellTurn(node: TestNode, effects: Effects): void {
    this.tellRole(node);
    const before = this.commits.get(node.id) ?? 0;
    if (effects.commitIndex > before) {
      this.told.push(`  ${node.id} ${commitWords(before, effects.commitIndex)}`);
      this.commits.set(node.id, effects.commitIndex);
    }
    for (const { context, index } of effects.readStates) {
      this.told.push(`  ${node.id} may answer read ${context} at ${index}`);
    }
    for (const context of effects.readsAborted) {
      this.told.push(`  ${node.id} gives up read ${context}`);
    }
  }

  private tellRole(node: TestNode): void {
    const words = roleWords(node);
    if (this.roles.get(node.id) === words) return;
    this.roles.set(node.id, words);
    this.told.push(`  ${node.id} ${words}`);
  }
}
