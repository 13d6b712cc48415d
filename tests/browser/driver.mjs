/**
 * Drives Chromium by playwright-core, under Node. One line of stdin is a command, one line of stdout its
 * answer, both JSON; the end of stdin ends Chromium and this process. browser.ts is the other side.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { stripVTControlCharacters } from "node:util";

const { playwright, axe, chromium, screenshots } = JSON.parse(process.argv[2]);
const browser = await createRequire(import.meta.url)(playwright).chromium.launch({
  executablePath: chromium,
});
const axeSource = await readFile(axe, "utf8");

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const WAYS = [
  { name: "light", viewport: DESKTOP, colorScheme: "light" },
  { name: "dark", viewport: DESKTOP, colorScheme: "dark" },
  { name: "phone", viewport: PHONE, colorScheme: "light" },
];
/** Milliseconds that Playwright waits for an element or a condition. */
const WAIT_MS = 120_000;
/** Milliseconds for a navigation: the first one of a server waits until the page is bundled. */
const NAVIGATION_MS = 120_000;
/** Most elements of a page that a person tabs over. */
const MAX_TABS = 80;

/** Test that is under way: its context, page, and what a person would see in the console. */
let context, page, faults;

const COMMANDS = {
  async open({ options }) {
    faults = [];
    context = await browser.newContext({
      viewport: DESKTOP,
      locale: "en-GB",
      timezoneId: "UTC",
      reducedMotion: "reduce", // a colour in transition has another contrast
      ...options,
    });
    context.setDefaultTimeout(WAIT_MS);
    context.setDefaultNavigationTimeout(NAVIGATION_MS);
    context.on("console", (message) => {
      if (message.type() === "error") faults.push(`console: ${message.text()}`);
    });
    context.on("weberror", (error) => faults.push(`error: ${error.error().stack}`));
    context.on("dialog", async (dialog) => {
      faults.push(`dialog: ${dialog.message()}`);
      await dialog.dismiss();
    });
    context.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (/^https?:$/.test(protocol) && hostname !== "127.0.0.1") faults.push(`host: ${request.url()}`);
    });
    context.on("requestfailed", (request) => {
      const reason = request.failure()?.errorText ?? "";
      // a page that leaves or cancels a stream aborts its requests
      if (reason !== "net::ERR_ABORTED") faults.push(`failed: ${nameOf(request)} ${reason}`);
    });
    context.on("response", (response) => {
      if (response.status() >= 400) faults.push(`status: ${nameOf(response.request())} ${response.status()}`);
    });
    page = await context.newPage();
  },

  async run({ steps, arg }) {
    const run = new Function(`return ${steps}`)();
    return await run({ page, context, step, look, tabTo }, arg);
  },

  /** Returns what has gone wrong since the last call, and forgets it. */
  faults: () => Promise.resolve(faults.splice(0)),

  async close() {
    await context.close();
  },
};

/** Runs a part of a test; its name is in the message of an error. */
async function step(name, act) {
  try {
    return await act();
  } catch (error) {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  }
}

/** Presses Tab, or Shift and Tab, until an element has the focus, as a person without a mouse does. */
async function tabTo(locator, key = "Tab") {
  await locator.waitFor();
  for (let presses = 0; presses < MAX_TABS; presses++) {
    if (await locator.evaluate((element) => element === element.ownerDocument.activeElement)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${MAX_TABS} times ${key} do not lead to ${locator}`);
}

/**
 * Checks a state of the page with axe-core in light, dark and phone width; what it finds is a fault. Makes a
 * screenshot of each where screenshots are asked for. On the phone, `pane` is the tab that is shown.
 */
async function look(state, pane) {
  for (const { name, viewport, colorScheme } of WAYS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(viewport);
    await drawn();
    if (name === "phone" && pane !== undefined) await page.getByRole("tab", { name: pane }).click();
    if (screenshots !== null) await page.screenshot({ path: `${screenshots}/${state}-${name}.png` });
    if (!await page.evaluate(() => "axe" in globalThis)) await page.evaluate(axeSource);
    const violations = await page.evaluate(async () => {
      const { violations } = await globalThis.axe.run();
      return violations.map(({ id, help, nodes }) => ({
        id,
        help,
        nodes: nodes.map(({ html, failureSummary }) => `${html.slice(0, 300)}\n${failureSummary}`),
      }));
    });
    for (const { id, help, nodes } of violations) {
      faults.push(`axe: ${state} ${name}: ${id}: ${help}\n${nodes.slice(0, 5).join("\n")}`);
    }
  }
  if (pane !== undefined) await page.getByRole("tab", { name: "conversation" }).click();
  await page.setViewportSize(DESKTOP);
  await page.emulateMedia({ colorScheme: "light" });
}

/** Resolves once the page has been told of its new size: `resize` comes before the callbacks of a frame. */
async function drawn() {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

function nameOf(request) {
  return `${request.method()} ${request.url()}`;
}

/** Returns an error with what a screen reader would find on the page, from which most causes are plain. */
async function describe(error) {
  const tree = await page?.locator("body").ariaSnapshot({ timeout: 2_000 }).catch(() => "") ?? "";
  if (screenshots !== null) await page?.screenshot({ path: `${screenshots}/failed.png` }).catch(() => {});
  return `${stripVTControlCharacters(error.message)}\n\nThe page:\n${tree.slice(0, 6_000)}\n\nFaults: ${
    JSON.stringify(faults)
  }`;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, command, ...options } = JSON.parse(line);
  let answer;
  try {
    answer = { id, result: await COMMANDS[command](options) ?? null };
  } catch (error) {
    answer = { id, error: await describe(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
