// The real OpenAI client, from where the build has installed it (npm-install.cmake), and what the tests ask of it.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const packages = process.env.KVLANE_E2E_PACKAGES;
if (!packages || !fs.existsSync(path.join(packages, 'node_modules', 'openai'))) {
  // ctest knows these words, and counts the test as skipped.
  console.log('not checked: the openai client is not installed, see the test e2e.client');
  process.exit(0);
}
const openai = createRequire(path.join(packages, 'package.json'))('openai');

export const { APIError, APIUserAbortError } = openai;
export const { BadRequestError, InternalServerError, NotFoundError, RateLimitError } = openai;
export const model = 'kvlane-model';

/** A client of the server at `url`. `calls` is filled with each HTTP request that it makes and what came back. */
export function makeClient(url, { calls = [], ...options } = {}) {
  const recorded = async (to, init) => {
    const call = { sent: performance.now(), headers: new Headers(init.headers) };
    calls.push(call);
    const response = await fetch(to, init);
    call.answered = performance.now();
    call.status = response.status;
    call.answer = response.headers;
    return response;
  };
  return new openai.OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0, fetch: recorded, ...options });
}

/** A text of `count` tokens: a word of up to eight letters and the space before it are one. `seed` makes it another. */
export function words(count, seed = 'w') {
  return Array.from({ length: count }, (_, i) => `${seed}${i}`).join(' ');
}

/** The body of a chat request that asks one thing. */
export function ask(content, more = {}) {
  return { model, messages: [{ role: 'user', content }], ...more };
}

/**
 * Starts a stream of `tokens` tokens, and returns once it has a lane. It is read to its end, which `over` waits for, or
 * until `leave` is called.
 */
export async function holdLane(client, tokens = 4000, content = 'hold a lane') {
  const request = ask(content, { stream: true, max_tokens: tokens, ignore_eos: true });
  const stream = await client.chat.completions.create(request);
  const chunks = stream[Symbol.asyncIterator]();
  await chunks.next();
  const read = (async () => {
    while (!(await chunks.next()).done);
  })();
  read.catch(() => {}); // told to whoever waits for `over`
  return {
    over: read,
    leave: async () => {
      stream.controller.abort();
      await read;
    },
  };
}

/** The error that `promise` ends with; anything else is a failure. */
export async function errorOf(promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`an error was expected, but this came: ${JSON.stringify(value)}`);
}
