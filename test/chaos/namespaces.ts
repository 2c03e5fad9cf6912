/**
 * A network of its own for each node: a namespace, an address, and links that can be cut one way.
 *
 * Owns: the namespaces and the bridge between them, removed at close. A cut is a blackhole route in
 * the sender's namespace, so what the other side sends still arrives. Never: a node.
 * Used by: the chaos command, where the machine permits it.
 */
import { spawnSync } from 'node:child_process';

const NETWORK = '10.77.0';
const BRIDGE = 'hfchaos';
const HOST = 254;

function run(...words: string[]): string {
  const [command = '', ...rest] = words;
  const result = spawnSync(command, rest, { encoding: 'utf8' });
  if (result.status === 0) return '';
  return `${words.join(' ')}: ${result.error?.message ?? result.stderr.trim()}`;
}

function must(...words: string[]): void {
  const fault = run(...words);
  if (fault !== '') throw new Error(fault);
}

export class Namespaces {
  private constructor(private readonly nodes: readonly number[]) {}

  /** Makes them, or says why not. */
  static open(nodes: readonly number[]): Namespaces | string {
    const namespaces = new Namespaces(nodes);
    namespaces.close(); // what a killed run left behind
    try {
      namespaces.build();
      return namespaces;
    } catch (error) {
      namespaces.close();
      return error instanceof Error ? error.message : String(error);
    }
  }

  host(nodeId: number): string {
    return `${NETWORK}.${nodeId}`;
  }

  prefix(nodeId: number): string[] {
    return ['ip', 'netns', 'exec', this.name(nodeId)];
  }

  /** What `from` sends to `to` is lost from now on. */
  cut(from: number, to: number): void {
    const { name } = this;
    run('ip', '-n', name(from), 'route', 'replace', 'blackhole', `${this.host(to)}/32`);
  }

  /** Every node reaches every other. */
  heal(): void {
    for (const from of this.nodes) {
      for (const to of this.nodes) {
        if (from === to) continue;
        run('ip', '-n', this.name(from), 'route', 'del', 'blackhole', `${this.host(to)}/32`);
      }
    }
  }

  close(): void {
    for (const nodeId of this.nodes) run('ip', 'netns', 'del', this.name(nodeId));
    run('ip', 'link', 'del', BRIDGE);
  }

  private readonly name = (nodeId: number): string => `hfchaos${nodeId}`;

  private build(): void {
    must('ip', 'link', 'add', BRIDGE, 'type', 'bridge');
    must('ip', 'addr', 'add', `${NETWORK}.${HOST}/24`, 'dev', BRIDGE);
    must('ip', 'link', 'set', BRIDGE, 'up');
    for (const nodeId of this.nodes) {
      const name = this.name(nodeId);
      const outside = `hfveth${nodeId}`;
      must('ip', 'netns', 'add', name);
      const pair = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', name];
      must('ip', 'link', 'add', outside, ...pair);
      must('ip', 'link', 'set', outside, 'master', BRIDGE);
      must('ip', 'link', 'set', outside, 'up');
      must('ip', '-n', name, 'addr', 'add', `${this.host(nodeId)}/24`, 'dev', 'eth0');
      must('ip', '-n', name, 'link', 'set', 'eth0', 'up');
      must('ip', '-n', name, 'link', 'set', 'lo', 'up');
    }
  }
}
