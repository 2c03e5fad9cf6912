/**
 * Shard ownership: each process takes as many shards as are free, works on them, gives them up.
 *
 * The position of each shard is in Redis and moves only under the token of the shard's lock. A
 * claim at the start shuts the last owner out before the position is read, so what is read cannot
 * change behind the new owner's back.
 *
 *     HOLDFAST_ENDPOINTS=… REDIS_URL=… node docs/examples/shard-owner.mjs
 */
import { createClient } from '@redis/client';
import { connect } from 'holdfast';
import { fenceOf, RedisGuard } from 'holdfast/guards';

const SHARDS = 3;

const endpoints = (process.env.HOLDFAST_ENDPOINTS ?? '127.0.0.1:7401').split(',');
const redis = createClient({ url: process.env.REDIS_URL });
redis.on('error', (error) => console.error(`redis: ${error.message}`));
await redis.connect();
const client = await connect({ endpoints });
const guard = new RedisGuard((words) => redis.sendCommand(words));

/** Moves the shard's position by ten; stops when the lease is no longer sure. */
async function workOn(lease, shard) {
  const key = `position:${shard}`;
  const fence = fenceOf(lease);
  const [found] = await guard.write(fence, { keys: [key], commands: [['GET', key]] });
  let position = Number(found ?? 0);
  for (let step = 0; step < 10 && lease.state === 'held'; step += 1) {
    position += 1;
    const commands = [['SET', key, String(position)]];
    await guard.write(fence, { keys: [key], commands });
  }
  console.log(`shard ${shard} is at ${position}`);
}

try {
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const lease = await client.tryAcquire(`shards/${shard}`, { ttlMs: 10_000 });
    if (lease === null) continue; // somebody else owns it
    try {
      await workOn(lease, shard);
    } finally {
      await lease.dispose();
    }
  }
} finally {
  await client.close();
  redis.destroy();
}
