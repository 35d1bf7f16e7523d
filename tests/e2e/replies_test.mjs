// What clients get when all goes well.
import assert from 'node:assert/strict';

import { ask, model, words } from './harness/client.mjs';
import { scenario } from './harness/server.mjs';

function checkUsage(usage, promptTokens, mostTokens) {
  assert.equal(usage.prompt_tokens, promptTokens);
  assert.ok(usage.completion_tokens >= 1 && usage.completion_tokens <= mostTokens, JSON.stringify(usage));
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
}

async function chunksOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const contents = (chunks) => chunks.map((c) => c.choices[0]?.delta.content ?? '').join('');

scenario('a chat completion has every field and adds up', [], async ({ client }) => {
  const before = Math.floor(Date.now() / 1000);
  const reply = await client.chat.completions.create(ask(words(20), { max_tokens: 200 }));
  assert.match(reply.id, /^chatcmpl-/);
  assert.equal(reply.object, 'chat.completion');
  assert.equal(reply.model, model);
  assert.ok(reply.created >= before && reply.created <= Date.now() / 1000, `created is ${reply.created}`);
  assert.equal(reply.choices.length, 1);
  const [choice] = reply.choices;
  assert.equal(choice.index, 0);
  assert.equal(choice.finish_reason, 'stop');
  assert.equal(choice.message.role, 'assistant');
  assert.ok(choice.message.content.length > 0);
  // Around the text of a message stand two marks, and a third begins the reply.
  checkUsage(reply.usage, 20 + 3, 199);
});

scenario('a reply ends at max_tokens and says so', [], async ({ client }) => {
  for (const limit of [{ max_tokens: 5 }, { max_completion_tokens: 5 }, { max_tokens: 5, ignore_eos: true }]) {
    const reply = await client.chat.completions.create(ask('hello', limit));
    assert.equal(reply.usage.completion_tokens, 5);
    assert.equal(reply.choices[0].finish_reason, 'length');
  }
});

scenario('the same prompt gets the same text and another one another', [], async ({ client }) => {
  const texts = [];
  for (const prompt of ['one', 'one', 'two'])
    texts.push((await client.chat.completions.create(ask(prompt))).choices[0].message.content);
  assert.equal(texts[0], texts[1]);
  assert.notEqual(texts[0], texts[2]);
});

scenario('a stream says what the plain reply says', [], async ({ client }) => {
  const plain = await client.chat.completions.create(ask('tell me'));
  const chunks = await chunksOf(
    await client.chat.completions.create(ask('tell me', { stream: true, stream_options: { include_usage: true } })),
  );
  assert.equal(contents(chunks), plain.choices[0].message.content);
  assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
  assert.ok(chunks.slice(1).every((c) => c.choices[0]?.delta.role === undefined), 'the role comes once');
  assert.ok(chunks.every((c) => c.object === 'chat.completion.chunk' && c.id === chunks[0].id && c.model === model));

  const [last, usage] = chunks.slice(-2);
  assert.equal(last.choices[0].finish_reason, plain.choices[0].finish_reason);
  assert.ok(chunks.slice(0, -2).every((c) => c.choices[0].finish_reason === null && c.usage === null));
  assert.deepEqual(usage.choices, []);
  const { prompt_tokens_details: _, ...counts } = plain.usage;
  const { prompt_tokens_details: __, ...streamed } = usage.usage;
  assert.deepEqual(streamed, counts);
});

scenario('a stream without include_usage ends with finish_reason', [], async ({ client }) => {
  const chunks = await chunksOf(await client.chat.completions.create(ask('tell me', { stream: true })));
  assert.ok(chunks.every((c) => c.choices.length === 1 && !('usage' in c)));
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
});

scenario('the bytes of a stream are events and end with DONE', [], async ({ server }) => {
  const body = JSON.stringify(ask('tell me', { stream: true, max_tokens: 4 }));
  const page = await server.request('POST', '/v1/chat/completions', { body });
  assert.equal(page.status, 200);
  assert.match(page.headers['content-type'], /^text\/event-stream/);
  const events = page.text.split('\n\n');
  assert.equal(events.pop(), '', 'the last event is complete');
  assert.equal(events.pop(), 'data: [DONE]');
  assert.equal(events.length, 1 + 4 + 1, page.text); // the role, the tokens, the finish_reason
  for (const event of events) {
    assert.match(event, /^data: \{[^\n]*\}$/);
    JSON.parse(event.slice('data: '.length));
  }
});

scenario('a legacy completion is answered whole and as a stream', [], async ({ client }) => {
  const request = { model, prompt: words(20), max_tokens: 200 };
  const plain = await client.completions.create(request);
  assert.match(plain.id, /^cmpl-/);
  assert.equal(plain.object, 'text_completion');
  assert.equal(plain.choices[0].finish_reason, 'stop');
  assert.ok(plain.choices[0].text.length > 0);
  checkUsage(plain.usage, 20, 199);

  const chunks = await chunksOf(
    await client.completions.create({ ...request, stream: true, stream_options: { include_usage: true } }),
  );
  assert.equal(chunks.map((c) => c.choices[0]?.text ?? '').join(''), plain.choices[0].text);
  assert.equal(chunks.at(-2).choices[0].finish_reason, 'stop');
  assert.equal(chunks.at(-1).usage.completion_tokens, plain.usage.completion_tokens);
});

scenario('the models are listed', ['--model', 'some-model'], async ({ client }) => {
  const models = [];
  for await (const entry of client.models.list()) models.push(entry);
  assert.deepEqual(models.map((m) => m.id), ['some-model']);
  assert.equal(models[0].object, 'model');
  const reply = await client.chat.completions.create(ask('hello', { model: 'some-model', max_tokens: 2 }));
  assert.equal(reply.model, 'some-model');
});

scenario('a prompt that begins like an earlier one finds that in the cache', [], async ({ client }) => {
  const beginning = words(400);
  const asked = (end) => client.chat.completions.create(ask(`${beginning} ${end}`, { max_tokens: 4 }));
  const cached = async (end) => (await asked(end)).usage.prompt_tokens_details.cached_tokens;
  assert.equal(await cached('first'), 0);
  // The cache holds blocks of 16 tokens, and 400 words and a mark have 25 whole ones.
  assert.equal(await cached('second'), 400);
  const other = await client.chat.completions.create(ask(words(400, 'x'), { max_tokens: 4 }));
  assert.equal(other.usage.prompt_tokens_details.cached_tokens, 0);
});

scenario('the same prompt again computes one token only', [], async ({ client, server }) => {
  const prompt = words(29); // and three marks: two whole blocks
  await client.chat.completions.create(ask(prompt, { max_tokens: 4 }));
  const again = await client.chat.completions.create(ask(prompt, { max_tokens: 4 }));
  assert.equal(again.usage.prompt_tokens, 32);
  assert.equal(again.usage.prompt_tokens_details.cached_tokens, 31);
  const metrics = await server.metrics();
  assert.equal(metrics.get('kvlane_server_prompt_tokens_total'), 64);
  assert.equal(metrics.get('kvlane_server_prompt_tokens_cached_total'), 31);
});
