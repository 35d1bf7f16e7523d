// The pages for those who run the server.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

import { ask, errorOf, holdLane } from './harness/client.mjs';
import { scenario } from './harness/server.mjs';

scenario('the metrics page counts what happened', ['--lanes', '3'], async ({ client, server }) => {
  for (const prompt of ['one', 'two']) await client.chat.completions.create(ask(prompt, { max_tokens: 4 }));
  await errorOf(client.chat.completions.create(ask('bad', { max_tokens: 0 })));
  const metrics = await server.metrics();
  assert.equal(metrics.get('kvlane_server_replies_total{status="200"}'), 2);
  assert.equal(metrics.get('kvlane_server_replies_total{status="400"}'), 1);
  assert.equal(metrics.get('kvlane_server_reply_tokens_total'), 8);
  assert.equal(metrics.get('kvlane_lanes'), 3);
  assert.equal(metrics.get('kvlane_requests_running'), 0);
  for (const [name, value] of metrics) assert.ok(!Number.isNaN(value), name);
});

scenario('promtool has no objection to the metrics page', [], async ({ t, client, server }) => {
  await client.chat.completions.create(ask('hello', { max_tokens: 4 }));
  const page = await server.request('GET', '/metrics');
  assert.match(page.headers['content-type'], /^text\/plain; version=0\.0\.4/);
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: page.text, encoding: 'utf8', timeout: 20_000 });
  if (checked.error?.code === 'ENOENT') {
    console.log('not checked: promtool is missing (Debian: the package prometheus)');
    return t.skip();
  }
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});

scenario('the debug page shows who runs and who waits', ['--lanes', '1', '--kv-tokens', '4096', '--speed', '1'],
  async ({ client, server }) => {
    const holder = await holdLane(client);
    const leave = new AbortController();
    const waits = errorOf(client.chat.completions.create(ask('waits', { priority: 3 }), { signal: leave.signal }));
    const queue = await server.queueUntil((q) => q.waiting === 1);
    assert.equal(queue.lanes, 1);
    assert.equal(queue.kv_capacity, 4096);
    assert.equal(queue.draining, false);
    assert.equal(queue.running.length, 1);
    assert.equal(queue.running[0].lane, 0);
    assert.equal(queue.running[0].kv_tokens, queue.kv_tokens_used);
    assert.equal(queue.line.length, 1);
    assert.equal(queue.line[0].place, 0);
    assert.equal(queue.line[0].priority, 3);
    assert.equal(queue.line[0].demand_tokens, queue.waiting_tokens);
    assert.notEqual(queue.line[0].tag, queue.running[0].tag);
    leave.abort();
    await waits;
    await holder.leave();
  });
