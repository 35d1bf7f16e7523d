// The end of a server, from SIGTERM to its exit code.
import assert from 'node:assert/strict';

import { APIError, ask, errorOf, holdLane, InternalServerError } from './harness/client.mjs';
import { scenario } from './harness/server.mjs';

const slow = ['--lanes', '1', '--speed', '4', '--drain-timeout', '30'];
const endsItself = { ends: true };

async function drain(server) {
  server.signal('SIGTERM');
  return server.queueUntil((q) => q.draining);
}

scenario('a SIGTERM refuses newcomers and lets the others finish', slow, async ({ client, server, calls }) => {
  const stream = await client.chat.completions.create(
    ask('runs', { stream: true, max_tokens: 600, ignore_eos: true, stream_options: { include_usage: true } }),
  );
  const chunks = stream[Symbol.asyncIterator]();
  await chunks.next();
  const waits = client.chat.completions.create(ask('waits', { max_tokens: 3 }));
  await server.queueUntil((q) => q.waiting === 1);
  await drain(server);

  const from = calls.length;
  const error = await errorOf(client.chat.completions.create(ask('late')));
  assert.ok(error instanceof InternalServerError, String(error));
  assert.equal(error.status, 503);
  assert.equal(error.code, 'service_unavailable');
  assert.equal(calls.length - from, 1);

  let last;
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) last = next.value;
  assert.equal(last.usage.completion_tokens, 600, 'the running stream is complete');
  assert.equal((await waits).usage.completion_tokens, 3, 'who waited is served');
  assert.equal(await server.ended(), 0);
}, endsItself);

scenario('the health page says that it drains', slow, async ({ client, server }) => {
  const before = await server.request('GET', '/health');
  assert.equal(before.status, 200);
  assert.deepEqual(JSON.parse(before.text), { status: 'ok' });
  const holder = await holdLane(client);
  await drain(server);
  const after = await server.request('GET', '/health');
  assert.equal(after.status, 503);
  assert.deepEqual(JSON.parse(after.text), { status: 'draining' });
  await holder.leave();
  assert.equal(await server.ended(), 0);
}, endsItself);

scenario('a stream that outlasts the drain ends with an error event',
  ['--lanes', '1', '--speed', '1', '--drain-timeout', '0.2'],
  async ({ client, server, calls }) => {
    const holder = await holdLane(client);
    const waits = errorOf(client.chat.completions.create(ask('waits')));
    await server.queueUntil((q) => q.waiting === 1);
    const attempts = calls.length;
    server.signal('SIGTERM');
    const error = await errorOf(holder.over);
    assert.ok(error instanceof APIError, String(error));
    assert.equal(error.code, 'service_unavailable');
    assert.ok(error.message.length > 0);
    const refused = await waits;
    assert.ok(refused instanceof InternalServerError, String(refused));
    assert.equal(refused.code, 'service_unavailable');
    assert.equal(calls.length, attempts, 'nothing is tried again');
    assert.equal(await server.ended(), 0);
  }, endsItself);

scenario('idle it ends at once', [], async ({ client, server }) => {
  await client.chat.completions.create(ask('hello', { max_tokens: 2 }));
  await server.allFree();
  const told = performance.now();
  server.signal('SIGTERM');
  assert.equal(await server.ended(), 0);
  assert.ok(performance.now() - told < 1900, 'it does not wait for the end of the drain');
}, endsItself);

scenario('SIGINT is as good as SIGTERM', [], async ({ server }) => {
  await server.allFree();
  server.signal('SIGINT');
  assert.equal(await server.ended(), 0);
}, endsItself);

scenario('a second signal ends it at once', slow, async ({ client, server }) => {
  const holder = await holdLane(client);
  await drain(server);
  server.signal('SIGTERM');
  assert.equal(await server.ended(), 128 + 15);
  await errorOf(holder.over);
}, endsItself);
