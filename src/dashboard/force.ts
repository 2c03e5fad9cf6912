/**
 * The form by which an operator frees a lock: who asks, why, and the token that is meant.
 *
 * Owns: the token and the request's key from the moment it is opened, so that what is sent again
 * has no second effect, and a lock that changed hands meanwhile is not touched. Never: there on a
 * node that was not started with --dashboard-admin: the command is shown instead. Used by: app.ts.
 */
import { useState } from 'preact/hooks';
import { html } from './markup.js';
import { type Forced, forceRelease, type Lock, newKey } from './node.js';

interface Typed {
  readonly currentTarget: { readonly value: string };
}

interface Submitted {
  preventDefault(): void;
}

/** The lease that is meant, since the form was opened. */
interface Meant {
  readonly token: number;
  readonly key: string;
}

function Hint({ lock }: { lock: Lock }) {
  const token = lock.holder?.fencing_token;
  if (token === undefined) return html``;
  const command = `holdfast admin force-release '${lock.name}' --token ${token} --reason …`;
  return html`<p class="quiet" id="read-only">
    This page is read-only. To free it: <code>${command}</code>
  </p>`;
}

function Done({ lock, forced }: { lock: Lock; forced: Forced }) {
  const { fencing_token: token, barrier_token: barrier } = forced;
  const command = `holdfast guard raise '${lock.name}' --token ${barrier}`;
  return html`<p id="forced" class="serious">
    Token ${token} is ended. Barrier token <b>${barrier}</b>: its holder may write until every guard
    of the lock has it: <code>${command}</code>
  </p>`;
}

function Form({ lock }: { lock: Lock }) {
  const [meant, setMeant] = useState<Meant | null>(null);
  const [actor, setActor] = useState('');
  const [reason, setReason] = useState('');
  const [problem, setProblem] = useState('');
  const [forced, setForced] = useState<Forced | null>(null);
  const send = async ({ token, key }: Meant): Promise<void> => {
    setProblem('');
    try {
      setForced(await forceRelease(lock.name, { token, actor, reason, key }));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  if (forced !== null) return html`<${Done} lock=${lock} forced=${forced} />`;
  if (meant === null) {
    const token = lock.holder?.fencing_token;
    if (token === undefined) return html``;
    const onOpen = (): void => setMeant({ token, key: newKey() });
    return html`<button class="link" id="force" onClick=${onOpen}>release by force…</button>`;
  }
  const onSubmit = (event: Submitted): void => {
    event.preventDefault();
    void send(meant);
  };
  const isSaid = actor !== '' && reason !== '';
  return html`<form id="force-form" onSubmit=${onSubmit}>
    <p>Ends the lease with token <b>${meant.token}</b>, whoever owns it.</p>
    <label>who asks
      <input name="actor" value=${actor} maxlength="128"
        onInput=${(event: Typed) => setActor(event.currentTarget.value)} />
    </label>
    <label>why
      <input name="reason" value=${reason} maxlength="1024"
        onInput=${(event: Typed) => setReason(event.currentTarget.value)} />
    </label>
    <button class="danger" disabled=${!isSaid}>Release token ${meant.token} by force</button>
    ${' '}<button class="link" type="button" onClick=${() => setMeant(null)}>not now</button>
    ${problem === '' ? '' : html`<p class="bad" id="problem">${problem}</p>`}
  </form>`;
}

/** `isAdmin`: the node takes the form. */
export function ForceRelease({ lock, isAdmin }: { lock: Lock; isAdmin: boolean }) {
  return isAdmin ? html`<${Form} lock=${lock} />` : html`<${Hint} lock=${lock} />`;
}
