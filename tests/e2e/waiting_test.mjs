// Clients that wait in line, and those that leave.
import assert from 'node:assert/strict';

import { APIUserAbortError, ask, errorOf, holdLane, RateLimitError } from './harness/client.mjs';
import { scenario } from './harness/server.mjs';

const oneLane = ['--lanes', '1', '--speed', '1'];

scenario('who waits is served when the lane is free', oneLane, async ({ client, server }) => {
  const holder = await holdLane(client);
  const waits = client.chat.completions.create(ask('waits', { max_tokens: 3 }));
  const queue = await server.queueUntil((q) => q.waiting === 1);
  assert.equal(queue.line[0].waits_for, 'lane');
  assert.equal(queue.lanes_busy, 1);
  await holder.leave();
  assert.equal((await waits).usage.completion_tokens, 3);
});

scenario('who waits too long is told so before it gives up', oneLane, async ({ client, calls }) => {
  const holder = await holdLane(client); // nothing has ended yet, so no wait can be predicted
  const from = calls.length;
  const error = await errorOf(client.chat.completions.create(ask('in a hurry'), { timeout: 1900 }));
  assert.ok(error instanceof RateLimitError, String(error));
  assert.equal(error.code, 'rate_limit_exceeded');
  assert.match(error.message, /timed out after \d+ ms in line/);
  const [call] = calls.slice(from);
  assert.equal(call.headers.get('x-stainless-timeout'), '1');
  const took = call.answered - call.sent;
  assert.ok(took >= 799 && took < 1900, `it took ${took} ms`);
  await holder.leave();
});

scenario('a timeout of whole seconds is no different', oneLane, async ({ client }) => {
  const holder = await holdLane(client);
  const error = await errorOf(client.chat.completions.create(ask('in a hurry'), { timeout: 2000 }));
  assert.ok(error instanceof RateLimitError, String(error));
  await holder.leave();
});

scenario('a wait that will be longer than the timeout is refused at once', oneLane, async ({ client, calls }) => {
  await client.chat.completions.create(ask('so that it knows its speed', { max_tokens: 5 }));
  const holder = await holdLane(client);
  const from = calls.length;
  const error = await errorOf(client.chat.completions.create(ask('in a hurry'), { timeout: 3500 }));
  assert.ok(error instanceof RateLimitError, String(error));
  assert.match(error.message, /2800 ms/);
  assert.match(error.headers.get('retry-after'), /^\d+$/);
  const [call] = calls.slice(from);
  assert.ok(call.answered - call.sent < 1500, `it took ${call.answered - call.sent} ms`);
  await holder.leave();
});

scenario('the server has a longest wait of its own', [...oneLane, '--max-wait', '0.3'], async ({ client }) => {
  const holder = await holdLane(client);
  const error = await errorOf(client.chat.completions.create(ask('patient')));
  assert.ok(error instanceof RateLimitError, String(error));
  await holder.leave();
});

scenario('who leaves the line frees its place', [...oneLane, '--max-waiting', '2'], async ({ client, server }) => {
  const holder = await holdLane(client);
  for (const stream of [false, true]) {
    const leave = new AbortController();
    const waits = errorOf(client.chat.completions.create(ask('waits', { stream }), { signal: leave.signal }));
    const stays = errorOf(client.chat.completions.create(ask('stays'), { signal: leave.signal }));
    await server.queueUntil((q) => q.waiting === 2);
    leave.abort();
    for (const error of await Promise.all([waits, stays])) assert.ok(error instanceof APIUserAbortError, String(error));
    const queue = await server.queueUntil((q) => q.waiting === 0);
    assert.equal(queue.waiting_tokens, 0);
    assert.equal(queue.lanes_busy, 1, 'the holder runs on');
  }
  await holder.leave();
});

scenario('who leaves its stream frees lane and tokens', oneLane, async ({ client, server }) => {
  const holder = await holdLane(client);
  const queue = await server.queue();
  assert.equal(queue.running.length, 1);
  assert.ok(queue.kv_tokens_used >= queue.running[0].prompt_tokens);
  await holder.leave();
  await server.allFree();
  assert.equal((await server.metrics()).get('kvlane_server_replies_total{status="499"}'), 1);
});

scenario('who leaves before its plain reply is ready frees lane and tokens', oneLane, async ({ client, server }) => {
  const leave = new AbortController();
  const runs = errorOf(
    client.chat.completions.create(ask('long', { max_tokens: 4000, ignore_eos: true }), { signal: leave.signal }),
  );
  await server.queueUntil((q) => q.lanes_busy === 1 && q.running[0]?.reply_tokens > 0);
  leave.abort();
  assert.ok((await runs) instanceof APIUserAbortError);
  await server.allFree();
});

scenario('a reply that finds no room to grow gives way and is completed later',
  ['--lanes', '2', '--kv-tokens', '512', '--headroom', '16', '--speed', '20'],
  async ({ client, server }) => {
    const long = { max_tokens: 300, ignore_eos: true };
    const alone = await client.chat.completions.create(ask('the first', long));
    const [first, second] = await Promise.all(
      ['the first', 'the second'].map((prompt) => client.chat.completions.create(ask(prompt, long))),
    );
    assert.equal(first.choices[0].message.content, alone.choices[0].message.content);
    assert.equal(second.usage.completion_tokens, 300);
    const readmitted = [...(await server.metrics())].filter(([name]) => /readmi|preempt/.test(name));
    assert.ok(readmitted.some(([, value]) => value >= 1), JSON.stringify(readmitted));
  });
