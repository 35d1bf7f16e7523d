// What clients are told when they get nothing, and what they make of it.
import assert from 'node:assert/strict';

import {
  ask, BadRequestError, errorOf, holdLane, model, NotFoundError, RateLimitError, words,
} from './harness/client.mjs';
import { scenario } from './harness/server.mjs';

scenario('a bad request names its parameter', [], async ({ client }) => {
  const user = { role: 'user', content: 'hello' };
  const bad = [
    ['messages', { model }],
    ['messages', { model, messages: [] }],
    ['messages[1].role', { model, messages: [user, { role: 'nobody', content: 'hello' }] }],
    ['messages[0].content', { model, messages: [{ role: 'user' }] }],
    ['max_tokens', { model, messages: [user], max_tokens: 0 }],
    ['max_completion_tokens', { model, messages: [user], max_completion_tokens: 1.5 }],
    ['n', { model, messages: [user], n: 2 }],
    ['tools', { model, messages: [user], tools: [{ type: 'function', function: { name: 'f' } }] }],
    ['stream_options', { model, messages: [user], stream_options: { include_usage: true } }],
    ['model', { messages: [user] }],
  ];
  for (const [param, body] of bad) {
    const error = await errorOf(client.chat.completions.create(body));
    assert.ok(error instanceof BadRequestError, `${param}: ${error}`);
    assert.equal(error.status, 400);
    assert.equal(error.param, param);
    assert.equal(error.type, 'invalid_request_error');
    assert.ok(error.message.includes(param), error.message);
  }
  const error = await errorOf(client.completions.create({ model, prompt: [1, 'two'] }));
  assert.ok(error instanceof BadRequestError && error.param === 'prompt', String(error));
});

scenario('what is not JSON is told where', [], async ({ server }) => {
  for (const body of ['', '{"model": ', '[]', 'null', '\xff\xfe', '['.repeat(100_000)]) {
    const page = await server.request('POST', '/v1/chat/completions', { body });
    assert.equal(page.status, 400, page.text);
    assert.match(JSON.parse(page.text).error.message, /^the body is (not )?JSON/);
  }
  const page = await server.request('POST', '/v1/chat/completions', { body: '{"max_tokens": 1e400}' });
  assert.match(JSON.parse(page.text).error.message, /number.*too large/);
});

scenario('an unknown model is not found', [], async ({ client }) => {
  const error = await errorOf(client.chat.completions.create(ask('hello', { model: 'other' })));
  assert.ok(error instanceof NotFoundError, String(error));
  assert.equal(error.code, 'model_not_found');
  assert.equal(error.param, 'model');
  assert.match(error.message, /'other'.*'kvlane-model'/);
});

scenario('unknown pages are not found and wrong methods not allowed', [], async ({ server, client }) => {
  assert.ok((await errorOf(client.embeddings.create({ model, input: 'hello' }))) instanceof NotFoundError);
  for (const [method, path] of [['GET', '/v1/chat/completions'], ['DELETE', '/v1/models'], ['POST', '/health']]) {
    const page = await server.request(method, path);
    assert.equal(page.status, 405, `${method} ${path}`);
    assert.match(JSON.parse(page.text).error.message, new RegExp(method));
  }
});

scenario('a prompt beyond the context is refused for its length', ['--context', '500'], async ({ client, calls }) => {
  const error = await errorOf(client.chat.completions.create(ask(words(600)), { maxRetries: 2 }));
  assert.ok(error instanceof BadRequestError, String(error));
  assert.equal(error.code, 'context_length_exceeded');
  assert.match(error.message, /603.*500/);
  assert.equal(calls.length, 1, 'it is not tried again');
});

scenario('what the KV tokens can never hold is refused for its length', ['--kv-tokens', '512', '--context', '8192'],
  async ({ client }) => {
    const error = await errorOf(client.chat.completions.create(ask(words(600))));
    assert.ok(error instanceof BadRequestError, String(error));
    assert.equal(error.code, 'context_length_exceeded');
    assert.match(error.message, /512/);
  });

scenario('a full line refuses with a time to come back', ['--lanes', '1', '--max-waiting', '1', '--speed', '1'],
  async ({ client, server }) => {
    await client.chat.completions.create(ask('so that it knows its speed', { max_tokens: 3 }));
    const first = await holdLane(client);
    const leave = new AbortController();
    const second = errorOf(client.chat.completions.create(ask('waits'), { signal: leave.signal }));
    await server.queueUntil((q) => q.waiting === 1);

    const error = await errorOf(client.chat.completions.create(ask('one too many')));
    assert.ok(error instanceof RateLimitError, String(error));
    assert.equal(error.code, 'rate_limit_exceeded');
    assert.match(error.message, /1 of 1 requests wait/);
    assert.match(error.headers.get('retry-after'), /^([1-9]|[1-5]\d|60)$/);
    assert.equal(error.headers.get('x-should-retry'), null);

    leave.abort();
    await second;
    await first.leave();
  });

scenario('the client tries again when it was told to and succeeds',
  ['--lanes', '1', '--max-waiting', '0', '--speed', '8'],
  async ({ client, server, calls }) => {
    await client.chat.completions.create(ask('so that it knows its speed', { max_tokens: 20, ignore_eos: true }));
    const holder = await holdLane(client);
    const from = calls.length;
    const refused = client.chat.completions.create(ask('comes back', { max_tokens: 4 }), { maxRetries: 2 });
    // The lane is taken until the client has been refused, and free when it comes back.
    for (let i = 0; calls[from]?.status === undefined; ++i) {
      assert.ok(i !== 1000, 'the first attempt is answered soon');
      await server.queue();
    }
    await holder.leave();
    await server.allFree();
    const reply = await refused;
    assert.equal(reply.usage.completion_tokens, 4);

    const attempts = calls.slice(from);
    assert.deepEqual(attempts.map((a) => a.status), [429, 200]);
    assert.deepEqual(attempts.map((a) => a.headers.get('x-stainless-retry-count')), ['0', '1']);
    const told = Number(attempts[0].answer.get('retry-after'));
    const gap = (attempts[1].sent - attempts[0].answered) / 1000;
    assert.ok(told >= 1 && told <= 10, `Retry-After ${told}`);
    assert.ok(gap >= told - 0.01 && gap < told + 2, `told ${told} s, came back after ${gap} s`);
  });

scenario('a wait of more than a minute is not tried again',
  ['--lanes', '1', '--max-waiting', '0', '--speed', '1', '--headroom', '8000'],
  async ({ client, calls }) => {
    await client.chat.completions.create(ask('so that it knows its speed', { max_tokens: 4 }));
    const holder = await holdLane(client, 8000);
    const from = calls.length;
    const error = await errorOf(client.chat.completions.create(ask('too late'), { maxRetries: 2 }));
    assert.ok(error instanceof RateLimitError, String(error));
    assert.equal(error.headers.get('retry-after'), '60');
    assert.equal(error.headers.get('x-should-retry'), 'false');
    assert.equal(calls.length - from, 1, 'the client gives up at once');
    await holder.leave();
  });

scenario('a refusal without a known wait names none', ['--lanes', '1', '--max-waiting', '0', '--speed', '1'],
  async ({ client }) => {
    const holder = await holdLane(client);
    const error = await errorOf(client.chat.completions.create(ask('nothing has ended yet')));
    assert.ok(error instanceof RateLimitError, String(error));
    assert.equal(error.headers.get('retry-after'), null, 'so the client waits as it sees fit');
    await holder.leave();
  });
