// The page that kvlane-replay sweep --report writes, as a browser shows it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const packages = process.env.KVLANE_REPORT_PACKAGES;
if (!packages || !fs.existsSync(path.join(packages, 'node_modules', 'puppeteer-core'))) {
  // ctest knows these words, and counts the test as skipped.
  console.log('not checked: puppeteer-core is not installed, see the test report.driver');
  process.exit(0);
}
const puppeteer = createRequire(path.join(packages, 'package.json'))('puppeteer-core');

const policies = ['fcfs', 'cache_aware', 'semaphore'];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kvlane-report-'));
const report = path.join(folder, 'report.html');
// A name that would end the script element, and begin another one, if nobody took care. It is part of the command line.
const json = path.join(folder, '<!--<script>document.body.remove()&lt;.json');

const swept = spawnSync(process.env.KVLANE_REPLAY,
  ['sweep', '--synthetic', '--chats', '30', '--rounds', '1', '--loads', '0.5,1.5,3', '--policy', policies.join(),
    '--report', report, '--json', json],
  { encoding: 'utf8', timeout: 20_000 });
if (/has no charts/.test(swept.stderr)) {
  console.log('not checked: kvlane-replay was built without the chart library');
  process.exit(0);
}

let browser;
let page;
const asked = [];
const complaints = [];

before(async () => {
  assert.equal(swept.status, 0, swept.stderr);
  browser = await puppeteer.launch({
    executablePath: process.env.KVLANE_CHROMIUM,
    userDataDir: path.join(folder, 'profile'),
    args: ['--no-sandbox', '--disable-gpu'],
    timeout: 30_000,
  });
  page = await browser.newPage();
  await page.setViewport({ width: 1280, height: 900 });
  page.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(pathToFileURL(report).href, { waitUntil: 'load' });
});
after(async () => {
  await browser?.close();
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/** What all canvases show, by the title of their chart. Drawing happens in a microtask. */
const drawings = () => page.evaluate(async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return Object.fromEntries([...document.querySelectorAll('figure')].map((f) =>
    [f.querySelector('h2').textContent, f.querySelector('canvas').toDataURL()]));
});
const titlesThatDiffer = (a, b) => Object.keys(a).filter((title) => a[title] !== b[title]);

test('every chart has lines in colour', async () => {
  const coloured = await page.evaluate(() => [...document.querySelectorAll('figure canvas')].map((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      const rgb = [data[i], data[i + 1], data[i + 2]];
      if (data[i + 3] > 200 && Math.max(...rgb) - Math.min(...rgb) > 80) ++count;
    }
    return count;
  }));
  assert.equal(coloured.length, 10);
  for (const count of coloured) assert.ok(count > 200, `coloured pixels: ${coloured}`);
});

test('the heading says where the numbers come from', async () => {
  const about = await page.$eval('#about', (e) => e.innerText);
  assert.match(about, /synthetic, seed 1/);
  assert.match(about, /SIMULATED/);
  assert.match(about, /kvlane-replay sweep --synthetic/);
  assert.equal(await page.title(), await page.$eval('h1', (e) => e.textContent));
});

test('text of others stays text', async () => {
  const command = await page.$eval('#about code', (e) => e.textContent);
  assert.ok(command.endsWith(`--json '${json}'`), command);
  assert.equal(await page.$$eval('script', (all) => all.length), 2);
});

test('a name switches its lines off and on', async () => {
  const [first, ...others] = await page.$$('#legend button[aria-pressed]');
  assert.equal(others.length, policies.length - 1);
  await page.mouse.move(0, 0);
  const all = await drawings();
  await first.evaluate((e) => e.click());
  assert.equal(await first.evaluate((e) => e.getAttribute('aria-pressed')), 'false');
  const without = await drawings();
  assert.ok(titlesThatDiffer(all, without).includes('Goodput in requests'));
  await first.evaluate((e) => e.click());
  assert.deepEqual(titlesThatDiffer(all, await drawings()), []);
});

test('another load changes the charts of one load, and no others', async () => {
  const before = await drawings();
  const waits = await page.evaluateHandle(() => [...document.querySelectorAll('figure')]
    .find((f) => f.querySelector('h2').textContent === 'Waits in line').querySelector('select'));
  await waits.asElement().select('2');
  assert.deepEqual(titlesThatDiffer(before, await drawings()).sort(),
    ['KV tokens over time', 'Requests in line over time', 'Waits in line']);
  const shown = await page.$$eval('figure select', (all) => all.map((s) => s.selectedOptions[0].textContent));
  assert.deepEqual(shown, ['p99', '3 × capacity', '3 × capacity', '3 × capacity']);
});

test('the table under a chart has the numbers of the run', async () => {
  const rows = await page.evaluate(async () => {
    const details = document.querySelector('figure details');
    details.querySelector('summary').click();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return [...details.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent));
  });
  const { runs } = JSON.parse(fs.readFileSync(json, 'utf8')).workloads[0];
  assert.deepEqual(rows[0].slice(1, 1 + policies.length), policies);
  const shown = rows.slice(1).flatMap((row) => row.slice(1, 1 + policies.length).map(Number));
  assert.equal(shown.length, runs.length);
  runs.forEach((run, i) => assert.ok(Math.abs(shown[i] - run.good_per_s) <= 0.005 * run.good_per_s, `${shown}`));
});

test('pointing at a chart tells the numbers there', async () => {
  const over = await page.$('figure .u-over');
  await over.scrollIntoView();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width - 3, box.y + box.height / 2);
  const text = await page.$eval('figure .readout', (e) => (e.hidden ? '' : e.innerText));
  assert.match(text, /load 3 × capacity/);
  for (const policy of policies) assert.ok(text.includes(policy), text);
});

test('a phone gets one column, and nothing to scroll sideways', async () => {
  await page.setViewport({ width: 400, height: 800 });
  await drawings();
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth,
    ...[...document.querySelectorAll('figure')].map((f) => Math.round(f.getBoundingClientRect().width))]);
  assert.ok(widths[0] <= 400, `${widths}`);
  assert.equal(new Set(widths.slice(1)).size, 1, `${widths}`);
  await page.setViewport({ width: 1280, height: 900 });
});

test('colours follow the wish for a dark page', async () => {
  const light = await drawings();
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  assert.equal(titlesThatDiffer(light, await drawings()).length, Object.keys(light).length);
});

test('it can be printed', async () => {
  const pdf = await page.pdf({ format: 'A4', timeout: 20_000 });
  assert.ok(pdf.length > 20_000, `${pdf.length} bytes`);
});

test('nothing is asked of a network, and the console stays empty', () => {
  assert.deepEqual(asked, [pathToFileURL(report).href]);
  assert.deepEqual(complaints, []);
});
