// Runs kvlane-server for a test: on a free port of the loopback, and not a moment longer than the test.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import test from 'node:test';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { makeClient } from './client.mjs';

const program = process.env.KVLANE_SERVER;
assert.ok(program, 'KVLANE_SERVER is not set: it is the path of kvlane-server');

const endsWithin = 15_000; // milliseconds from SIGTERM to the end of a server that has nothing to do, or 2 s for that
const always = ['--address', '127.0.0.1', '--port', '0'];
const defaults = { '--speed': '50', '--drain-timeout': '2' };

class Server {
  output = '';

  constructor(args) {
    const unsaid = Object.entries(defaults).filter(([option]) => !args.includes(option));
    const command = [program, ...always, ...unsaid.flat(), ...args];
    // No core file, a minute of CPU time; and it dies with this process, however that ends.
    const limited = ['--pdeathsig', 'KILL', 'sh', '-c', 'ulimit -c 0; ulimit -t 60; exec "$0" "$@"', ...command];
    this.process = spawn('setpriv', limited, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = once(this.process, 'exit').then(([code, signal]) => signal ?? code);
    for (const pipe of [this.process.stdout, this.process.stderr])
      pipe.setEncoding('utf8').on('data', (text) => (this.output += text));
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  }

  get pid() {
    return this.process.pid;
  }

  async listening() {
    const ended = this.exited.then((how) => assert.fail(`the server ended with ${how} before it listened`));
    for (let found; ; await Promise.race([once(this.process.stdout, 'data'), ended]))
      if ((found = /^listening on (http:\/\/127\.0\.0\.1:(\d+))$/m.exec(this.output))) {
        [, this.url, this.port] = found;
        return;
      }
  }

  /** A request without the OpenAI client: {status, headers, text}. */
  async request(method, path, { body, headers = {}, agent = this.agent } = {}) {
    const request = http.request(`${this.url}${path}`, { method, agent, headers });
    request.end(body);
    const [response] = await once(request, 'response');
    let text = '';
    for await (const piece of response.setEncoding('utf8')) text += piece;
    return { status: response.statusCode, headers: response.headers, text, reusedSocket: request.reusedSocket };
  }

  async queue() {
    const page = await this.request('GET', '/debug/queue');
    assert.equal(page.status, 200);
    return JSON.parse(page.text);
  }

  /** Looks at the queue until `isSo` holds of it, at most `looks` times. */
  async queueUntil(isSo, looks = 1000) {
    let queue;
    for (let i = 0; i !== looks; ++i) {
      queue = await this.queue();
      if (isSo(queue)) return queue;
    }
    assert.fail(`looked ${looks} times for ${isSo}, and last saw ${JSON.stringify(queue)}`);
  }

  /** Waits, boundedly, until every lane and token is free and nobody waits. */
  async allFree() {
    await this.queueUntil((q) => q.lanes_busy + q.kv_tokens_used + q.waiting + q.running.length === 0);
  }

  /** A field of /proc/PID/status, such as Threads or VmRSS (kB). */
  status(field) {
    const found = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(fs.readFileSync(`/proc/${this.pid}/status`, 'utf8'));
    return Number(found[1]);
  }

  /** Counters and gauges of /metrics: name with labels -> value. */
  async metrics() {
    const { text } = await this.request('GET', '/metrics');
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const split = (line, at = line.lastIndexOf(' ')) => [line.slice(0, at), Number(line.slice(at + 1))];
    return new Map(lines.map((line) => split(line)));
  }

  signal(name) {
    this.process.kill(name);
  }

  /** Waits for the end and returns its exit code, or the name of the signal that ended it. */
  async ended() {
    const late = setTimeout(() => this.process.kill('SIGKILL'), endsWithin);
    const how = await this.exited;
    clearTimeout(late);
    this.agent.destroy();
    return how;
  }
}

/**
 * A test with a server of its own, started with `args`. Afterwards everything must be free and a SIGTERM must end it
 * with status 0, unless the scenario `ends` the server itself. A failure shows what the server has printed.
 *
 * Each scenario is a ctest: the build finds its name on the line of the call.
 */
export function scenario(name, args, body, { ends = false } = {}) {
  test(name, { timeout: 45_000 }, async (t) => {
    const server = new Server(args);
    let finished = false;
    // Also when the time is over and the body still waits for something.
    t.after(() => {
      if (!finished) console.log(`--- the server with ${args.join(' ')} printed:\n${server.output}---`);
      server.signal('SIGKILL'); // no matter if it has ended
    });
    await server.listening();
    const calls = [];
    await body({ t, server, calls, client: makeClient(server.url, { calls }) });
    if (!ends) {
      await server.allFree();
      server.signal('SIGTERM');
      assert.equal(await server.ended(), 0, 'the exit code after SIGTERM');
    }
    finished = true;
  });
}
