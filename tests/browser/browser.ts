/**
 * The page in a real Chromium. Playwright runs under Node (driver.mjs), a test under Deno: it starts and
 * kills servers, and sends functions to Node, which act in the browser. Chromium is started once for a test
 * file.
 */
import type * as Axe from "axe-core";
import { createRequire } from "node:module";
import type { BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { assertEquals } from "../assert.ts";
import { endChild, Tail } from "../support/child_process.ts";
import { HANGS_MS } from "../support/clock.ts";

/** What a function that runs in Node gets. It sees nothing else of the test's file: it is sent as text. */
export interface Session {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Runs a part of the test; its name is in the message of an error. */
  step<Result>(name: string, act: () => Promise<Result>): Promise<Result>;
  /** Presses a key, default Tab, until an element has the focus; fails when it never has. */
  tabTo(locator: Locator, key?: "Tab" | "Shift+Tab"): Promise<void>;
  /**
   * Checks the page with axe-core in light, dark and phone width; what it finds is a fault. With
   * `$SCREENSHOTS` it makes a screenshot of each in that folder. `pane` is the tab that a phone shows.
   */
  look(state: string, pane?: "plan" | "log"): Promise<void>;
}

/** A page of a new profile. */
export interface Browser {
  /** Sends a function with its argument to Node and resolves to its result; both are JSON. */
  run<Argument, Result>(
    steps: (session: Session, argument: Argument) => Promise<Result>,
    argument?: Argument,
  ): Promise<Result>;
  /** Resolves to a server, which is ended after the page: a page without its server reports faults. */
  use<Server extends AsyncDisposable>(server: Server | Promise<Server>): Promise<Server>;
  /**
   * Returns what went wrong in the browser since the last call: findings of axe-core, errors in the console,
   * reports of the content security policy, failed requests, requests to other hosts, dialogs. What is left
   * at the end of a test fails it.
   */
  faults(): Promise<string[]>;
}

/** Paths of Chromium and Node; null where one of them is not installed. */
export const PROGRAMS: { node: string; chromium: string } | null = findPrograms();
const NEEDS = "needs the packages chromium and nodejs";

/** Types whose packages this file caches: Node loads what `deno.lock` pins. */
export type Packages = [Page, typeof Axe];

/** Node with a Chromium; one for the tests of a file. */
let driver: Driver | undefined;

Deno.test.afterAll(endBrowser);

/** Defines a test in the browser; it is ignored without Chromium and Node. */
export function browserTest(
  name: string,
  body: (browser: Browser) => Promise<void>,
  options: BrowserContextOptions = {},
): void {
  Deno.test({
    name: PROGRAMS === null ? `${name} (${NEEDS})` : name,
    ignore: PROGRAMS === null,
    // Chromium outlives the test that starts it
    sanitizeOps: false,
    sanitizeResources: false,
    fn: () => withBrowser(body, options),
  });
}

/** Calls a function with a new page, and fails for faults that are left. */
export async function withBrowser(
  body: (browser: Browser) => Promise<void>,
  options: BrowserContextOptions = {},
): Promise<void> {
  driver ??= await startDriver();
  const { send } = driver;
  await using servers = new AsyncDisposableStack();
  await send("open", { options });
  const faults = async () => await send("faults") as string[];
  try {
    await body({
      run: async (steps, argument) =>
        // the function's result went through JSON
        await send("run", { steps: String(steps), arg: argument }) as Awaited<ReturnType<typeof steps>>,
      use: async (server) => servers.use(await server),
      faults,
    });
    assertEquals(await faults(), []);
  } finally {
    await send("close");
  }
}

/** Ends Chromium, if it was started. */
export async function endBrowser(): Promise<void> {
  await driver?.[Symbol.asyncDispose]();
}

interface Driver extends AsyncDisposable {
  /** Sends a command; rejects with the driver's error, and ends the driver when it does not answer. */
  send(command: string, options?: Record<string, unknown>): Promise<unknown>;
}

async function startDriver(): Promise<Driver> {
  const { node, chromium } = PROGRAMS!; // a test without them is ignored
  const screenshots = Deno.env.get("SCREENSHOTS") ?? null;
  if (screenshots !== null) await Deno.mkdir(screenshots, { recursive: true });
  const temp = await Deno.makeTempDir({ prefix: "preamp-browser-" }); // also for Chromium's profile
  const settings = { ...await packages(), chromium, screenshots };
  const child = new Deno.Command(node, {
    args: [new URL("driver.mjs", import.meta.url).pathname, JSON.stringify(settings)],
    env: { TMPDIR: temp },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stdout = new Tail(child.stdout);
  const stderr = new Tail(child.stderr);
  const stdin = child.stdin.getWriter();
  let sent = 0;

  async function send(command: string, options: Record<string, unknown> = {}): Promise<unknown> {
    const id = ++sent;
    const late = setTimeout(() => endChild(child, "SIGKILL"), HANGS_MS);
    const line = `${JSON.stringify({ id, command, ...options })}\n`;
    await stdin.write(new TextEncoder().encode(line)).catch(() => {}); // it has ended, as its answer says
    const text = await stdout.until((text) => text.split("\n").length > id);
    clearTimeout(late);
    const answer = text.split("\n")[id - 1];
    if (!answer) throw new Error(`Cannot ${command} in the browser: Node has ended\n${stderr.text}`);
    const { result, error } = JSON.parse(answer) as { result?: unknown; error?: string };
    if (error !== undefined) throw new Error(error);
    return result;
  }

  return {
    send,
    async [Symbol.asyncDispose]() {
      const late = setTimeout(() => endChild(child, "SIGKILL"), HANGS_MS);
      await stdin.close().catch(() => {}); // it has ended
      await Promise.all([child.status, stdout.closed, stderr.closed]);
      clearTimeout(late);
      await Deno.remove(temp, { recursive: true });
    },
  };
}

/** Resolves to the files of the packages in Deno's cache, which it fills first when they are not there. */
async function packages(): Promise<{ playwright: string; axe: string }> {
  const { resolve } = createRequire(import.meta.url);
  const find = () => ({ playwright: resolve("playwright-core"), axe: resolve("axe-core") });
  try {
    return find();
  } catch {
    const args = ["cache", "--quiet", import.meta.url];
    const { success, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
    if (!success) throw new Error(`Cannot cache playwright-core: ${new TextDecoder().decode(stderr)}`);
    return find();
  }
}

function findPrograms(): { node: string; chromium: string } | null {
  const node = findProgram("node");
  const chromium = findProgram("chromium", "chromium-browser", "google-chrome");
  return node === null || chromium === null ? null : { node, chromium };
}

function findProgram(...names: readonly string[]): string | null {
  const folders = (Deno.env.get("PATH") ?? "").split(":");
  return names.flatMap((name) => folders.map((folder) => `${folder}/${name}`)).find(isFile) ?? null;
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
