// Many connections, slow ones, and those that make no sense.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { once } from 'node:events';

import { APIUserAbortError, ask, holdLane } from './harness/client.mjs';
import { scenario } from './harness/server.mjs';

const path = '/v1/chat/completions';

// For long streams.
const room = ['--kv-tokens', '65536', '--context', '32768'];

/** A request as bytes. */
function post(body) {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** Sends bytes, and returns all that comes until the server closes the connection. */
async function exchangeBytes(server, bytes) {
  const socket = net.connect(server.port, '127.0.0.1');
  socket.on('error', () => {}); // a reset is an answer too
  socket.end(bytes, 'latin1');
  let answer = '';
  socket.setEncoding('latin1').on('data', (text) => (answer += text));
  await once(socket, 'close');
  return answer;
}

scenario('a thousand connections wait, leave or are answered',
  ['--lanes', '2', '--max-waiting', '600', '--speed', '20', '--quiet', ...room],
  async ({ t, client, server }) => {
    const [, files] = /Max open files\s+(\d+)/.exec(fs.readFileSync(`/proc/${server.pid}/limits`, 'utf8'));
    if (Number(files) < 1200) {
      console.log(`not checked: ${files} files may be open at once, and 1200 are needed (ulimit -n)`);
      return t.skip();
    }
    const holders = [await holdLane(client, 20_000, 'one'), await holdLane(client, 20_000, 'two')];
    const [threads, memory] = [server.status('Threads'), server.status('VmRSS')];

    const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
    const counts = { 200: 0, 429: 0, gone: 0 };
    const requests = Array.from({ length: 1000 }, (_, i) => {
      const request = http.request(`${server.url}${path}`, { method: 'POST', agent });
      request.over = new Promise((resolve) => {
        const count = (what) => {
          ++counts[what];
          request.counted = true;
          resolve();
        };
        request.on('error', () => count('gone'));
        request.on('response', (response) => response.resume().on('end', () => count(response.statusCode)));
      });
      request.end(JSON.stringify(ask(`request ${i}`, { max_tokens: 2 })));
      return request;
    });

    const full = await server.queueUntil((q) => q.waiting === 600 && counts[429] === 400, 5000);
    assert.equal(full.lanes_busy, 2);
    assert.deepEqual(counts, { 200: 0, 429: 400, gone: 0 });
    assert.equal(server.status('Threads'), threads, 'connections cost no threads');
    const grown = (server.status('VmRSS') - memory) / 1000;
    // Sanitizers hold freed memory back.
    const most = process.env.KVLANE_E2E_SANITIZED === '1' ? 512 : 64;
    assert.ok(grown < most, `a connection costs ${grown.toFixed(1)} kB`);

    const leaving = requests.filter((r) => !r.counted).slice(0, 300);
    for (const request of leaving) request.destroy();
    await server.queueUntil((q) => q.waiting === 300, 5000);
    await Promise.all(holders.map((h) => h.leave()));
    await Promise.all(requests.map((r) => r.over));
    assert.deepEqual(counts, { 200: 300, 429: 400, gone: 300 });
    agent.destroy();
  });

// The name of the model is in each event: together they are far more than the kernel keeps for a connection. What the
// server keeps must not cost time with the square of its size either, or this takes longer than a test may.
const longName = 'm'.repeat(1500);

scenario('who does not read its stream holds nobody up',
  ['--lanes', '2', '--speed', '10000', '--model', longName, '--quiet', ...room],
  async ({ client, server }) => {
    const body = JSON.stringify(ask('hello', { model: longName, stream: true, max_tokens: 16_000, ignore_eos: true }));
    const socket = net.connect(server.port, '127.0.0.1');
    socket.pause();
    socket.write(post(body));
    await server.queueUntil((q) => q.lanes_busy === 1);
    for (let i = 0; i !== 10; ++i) {
      const reply = await client.chat.completions.create(ask(`prompt ${i}`, { model: longName, max_tokens: 5 }));
      assert.equal(reply.usage.completion_tokens, 5);
    }
    // Its own lane is given back too, although not a byte was read.
    await server.queueUntil((q) => q.lanes_busy === 0, 20_000);
    let [bytes, events, end] = [0, 0, ''];
    for await (const piece of socket.setEncoding('latin1')) {
      bytes += piece.length;
      events += (end.slice(-8) + piece).split('"index":0').length - 1;
      end = (end + piece).slice(-100);
      if (end.includes('[DONE]')) break;
    }
    assert.ok(bytes > 24e6, `${bytes} bytes`);
    assert.equal(events, 1 + 16_000 + 1, 'the role, the tokens, the finish_reason');
  });

scenario('HTTP that makes no sense does not hurt', [], async ({ client, server }) => {
  const nonsense = [
    'hello\r\n\r\n',
    '\x00\x01\x02\x03\x16\x03\x01\r\n\r\n',
    'GET\r\n\r\n',
    'GET /health SPDY/3.1\r\n\r\n',
    `POST ${path} HTTP/1.1\r\nContent-Length: -5\r\n\r\n`,
    `POST ${path} HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n`,
    `POST ${path} HTTP/1.1\r\nContent-Length: 17000000\r\n\r\n`, // more than a body may have
    `POST ${path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    `GET /health HTTP/1.1\r\n${'a'.repeat(100_000)}: b\r\n\r\n`,
    `GET /${'a'.repeat(100_000)} HTTP/1.1\r\n\r\n`,
    `POST ${path} HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"model"`, // and then nothing more
  ];
  for (const bytes of nonsense) {
    const answer = await exchangeBytes(server, bytes);
    assert.match(answer, /^($|HTTP\/1\.1 4\d\d )/, `${bytes.slice(0, 60)} was answered with ${answer.slice(0, 200)}`);
  }
  const reply = await client.chat.completions.create(ask('hello', { max_tokens: 2 }));
  assert.equal(reply.usage.completion_tokens, 2);
});

scenario('a connection serves many requests, also after others were cut', ['--lanes', '2', '--speed', '10'],
  async ({ client, server }) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const asked = (content) =>
      server.request('POST', path, { agent, body: JSON.stringify(ask(content, { max_tokens: 2 })) });
    assert.equal((await asked('first')).reusedSocket, false);
    for (let i = 0; i !== 5; ++i) {
      const holder = await holdLane(client); // on a connection of its own, which is cut
      await holder.leave();
      const reply = await asked(`prompt ${i}`);
      assert.equal(reply.status, 200);
      assert.equal(reply.reusedSocket, true);
    }
    agent.destroy();
  });

scenario('requests of one connection are answered in their order', ['--lanes', '4'], async ({ server }) => {
  const socket = net.connect(server.port, '127.0.0.1');
  const limits = [60, 1, 30, 2]; // those that come later are ready earlier
  for (const max_tokens of limits) {
    socket.write(post(JSON.stringify(ask('hello', { max_tokens, ignore_eos: true }))));
  }
  let text = '';
  socket.setEncoding('utf8').on('data', (piece) => (text += piece));
  const made = () => [...text.matchAll(/"completion_tokens":(\d+)/g)].map(([, count]) => Number(count));
  while (made().length !== limits.length) await once(socket, 'data');
  assert.deepEqual(made(), limits);
  socket.destroy();
});

scenario('who cuts a connection with several requests leaves with all of them', ['--lanes', '1', '--speed', '1'],
  async ({ server }) => {
    const socket = net.connect(server.port, '127.0.0.1');
    socket.on('error', () => {});
    for (let i = 0; i !== 4; ++i)
      socket.write(post(JSON.stringify(ask(`prompt ${i}`, { max_tokens: 4000, ignore_eos: true }))));
    await server.queueUntil((q) => q.lanes_busy === 1 && q.waiting === 3);
    socket.destroy();
    await server.allFree();
  });

scenario('clients that come and go leave nothing behind', ['--lanes', '2', '--max-waiting', '100', '--speed', '20'],
  async ({ client, server }) => {
    for (let round = 0; round !== 10; ++round) {
      const leave = new AbortController();
      const all = Array.from({ length: 20 }, async (_, i) => {
        const request = ask(`prompt ${i}`, { stream: i % 2 === 0, max_tokens: 2000, ignore_eos: true });
        const reply = await client.chat.completions.create(request, { signal: leave.signal });
        if (request.stream) for await (const chunk of reply) assert.equal(chunk.choices[0].finish_reason, null);
      });
      await server.queueUntil((q) => q.waiting >= 15);
      leave.abort();
      for (const { reason } of await Promise.allSettled(all))
        assert.ok(reason === undefined || reason instanceof APIUserAbortError, String(reason));
      await server.allFree();
    }
  });
