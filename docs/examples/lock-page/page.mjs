/**
 * The page of lock-page.mjs, in the browser: follows the events of the lock, and reads it anew
 * after each, so that what is shown is what the cluster says and not what the page has worked out.
 *
 * The connection is lost now and then: a node dies, a laptop sleeps. The page then says so, since
 * what it shows may be old, and goes on from the revision up to which it has been told.
 */
const RETRY_MS = 1_000;
/** A node tells of its progress every 5 s, also when nothing happens. */
const SILENCE_MS_MAX = 15_000;
const CHANGES_SHOWN_MAX = 50;
const CHANGES = ['granted', 'ended', 'queued', 'left'];

const place = (id) => document.getElementById(id);

/** Everything up to this revision has been told; 0: begin with how the lock is. */
let revision = 0;
/** The lock as it was read last, and the local moment of that reading. */
let lock = null;
let readAtMs = 0;

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** Shown as live only while events come and the last reading was answered. */
let isFollowing = false;
let isAnswered = true;
function sayState() {
  const isLive = isFollowing && isAnswered;
  const words = isLive ? 'live' : 'reconnecting: what is shown may be old';
  // Set when it changes alone: screen readers read out what is set.
  if (place('state').textContent !== words) place('state').textContent = words;
  place('state').classList.toggle('live', isLive);
}

function durationOf(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** Whoever acquired the lock may have said who it is; the rest is known by number. */
const nameOf = ({ metadata, principal }) => metadata || `principal ${principal}`;

/** The cluster's time is no clock of the wall: only the time since the grant means something. */
function showAge() {
  const holder = lock?.holder ?? null;
  if (holder === null) return;
  const heldMs = lock.cluster_time - holder.since + (performance.now() - readAtMs);
  const since = new Date(Date.now() - heldMs);
  place('since').dateTime = since.toISOString();
  place('since').textContent = since.toLocaleTimeString();
  place('age').textContent = `(${durationOf(heldMs)})`;
}

function show() {
  const { name, holder, queue } = lock;
  document.title = `${name}: ${holder === null ? 'free' : nameOf(holder)}`;
  place('name').textContent = name;
  place('holder').textContent = holder === null ? 'nobody' : nameOf(holder);
  place('token').textContent = holder === null ? '–' : holder.fencing_token;
  if (holder === null) {
    place('since').removeAttribute('datetime');
    place('since').textContent = '–';
    place('age').textContent = '';
  }
  showAge();
  place('alone').hidden = queue.length > 0;
  place('waiters').replaceChildren(...queue.map((waiter) => element('li', nameOf(waiter))));
}

/** One reading at a time; what happens meanwhile asks for one more. */
let isReading = false;
let isOld = false;
async function readLock() {
  isOld = true;
  if (isReading) return;
  isReading = true;
  while (isOld) {
    isOld = false;
    try {
      const response = await fetch('lock');
      if (!response.ok) throw new Error(`${response.status}`);
      lock = await response.json();
      readAtMs = performance.now();
      isAnswered = true;
      show();
      sayState();
    } catch {
      isAnswered = false;
      isOld = true;
      sayState();
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
  isReading = false;
}

function showChange({ type, revision: number, fencing_token: token, cause }) {
  const row = document.createElement('tr');
  const what = cause === null ? type : `${type}: ${cause}`;
  row.append(element('td', number), element('td', what), element('td', token || ''));
  place('changes').prepend(row);
  if (place('changes').rows.length > CHANGES_SHOWN_MAX) place('changes').lastElementChild.remove();
}

function follow() {
  const query = revision === 0 ? 'snapshot=true' : `revision=${revision + 1}`;
  const source = new EventSource(`watch?${query}`);
  let silence = 0;
  const again = () => {
    clearTimeout(silence);
    source.close();
    isFollowing = false;
    sayState();
    setTimeout(follow, RETRY_MS);
  };
  const onSign = () => {
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE_MS_MAX);
    isFollowing = true;
    sayState();
  };
  const onTold = ({ type, data }) => {
    onSign();
    const told = JSON.parse(data);
    revision = told.revision;
    if (CHANGES.includes(type)) showChange(told);
    if (type !== 'progress') readLock();
  };
  for (const type of [...CHANGES, 'snapshot', 'progress']) source.addEventListener(type, onTold);
  source.onopen = () => {
    onSign();
    readLock();
  };
  source.onerror = ({ data }) => {
    // An error with words is a node's: what it keeps may begin later than what was told.
    if (data !== undefined && JSON.parse(data).error.code === 'COMPACTED') {
      revision = 0;
      showChange({ type: 'some changes were missed', revision: '', fencing_token: 0, cause: null });
    }
    again();
  };
}

follow();
setInterval(showAge, 1_000);
