/**
 * The page in Chromium: bytes, first paint from a warm server, a log of more than 5,000 entries that scrolls,
 * and a stream of 1,000 deltas a second. Frames are those of a headless browser without a graphics card.
 *
 *   deno run -A tests/bench/page_bench.ts [rounds]
 */
import { endBrowser, PROGRAMS, withBrowser } from "../browser/browser.ts";
import { runWith, scripted, startRun } from "../browser/runs.ts";
import { startServer } from "../e2e/program.ts";
import { median, print, report, tableOf } from "./figures.ts";

const rounds = Number(Deno.args[0] ?? 9);

const MODULE = import.meta.resolve("./modules/provider_clock.ts");
const SECONDS = 5;
const PER_SECOND = 1_000;

if (PROGRAMS === null) {
  print("not measured: Chromium or Node is not installed");
  Deno.exit(0);
}

/** Frames and long tasks of a page. */
interface Smoothness {
  /** Frames a second. */
  readonly fps: number;
  /** Milliseconds between two frames. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Milliseconds of the longest task, 0 when none took 50 ms. */
  readonly longest_task: number;
}

/** Begins to record the frames of a page; `stopRecording()` returns them. Runs in the page. */
const RECORD = `(() => {
  const frames = [];
  let longest_task = 0;
  let last = performance.now();
  let recording = true;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longest_task = Math.max(longest_task, duration);
  }).observe({ type: "longtask" });
  const onFrame = (now) => {
    frames.push(now - last);
    last = now;
    if (recording) requestAnimationFrame(onFrame);
  };
  requestAnimationFrame(onFrame);
  globalThis.stopRecording = () => {
    recording = false;
    frames.sort((a, b) => a - b);
    const at = (share) => frames[Math.min(frames.length - 1, Math.floor(frames.length * share))];
    const fps = 1000 * frames.length / frames.reduce((sum, ms) => sum + ms, 0);
    return { fps, p50: at(0.5), p99: at(0.99), max: at(1), longest_task };
  };
})()`;

const folder = await Deno.makeTempDir();
try {
  const plan = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{
      module: "provider-clock",
      source: MODULE,
      config: { deltas: SECONDS * PER_SECOND, interval_ms: 1_000 / PER_SECOND, padding: " and so on.\n\n" },
    }],
  };
  await Deno.writeTextFile(`${folder}/clock.json`, JSON.stringify(plan));
  await withBrowser(async (browser) => {
    const server = await browser.use(startServer(["--no-auth", "--plans", folder], {
      env: { PREAMP_MODULES_INLINE: MODULE, PREAMP_LIMITS_MAX_TOOL_CALLS: "2000" },
    }));
    const { url } = server;
    await server.fetch("/", { headers: { accept: "text/html" } }).then((response) => response.text());

    const paints: number[] = [];
    const usable: number[] = [];
    let bytes = 0;
    for (let round = -1; round < rounds; round++) {
      const seen = await browser.run(async ({ context }, url) => {
        const fresh = await context.browser()!.newContext(); // an empty cache
        const page = await fresh.newPage();
        await page.goto(url);
        await page.getByRole("textbox", { name: "Prompt" }).waitFor();
        const seen = await page.evaluate<{ paint: number; bytes: number }>(`({
          paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
          bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
            .filter(({ name }) => !name.includes("/v1/")).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
        })`);
        const usable = await page.evaluate<number>("performance.now()");
        await fresh.close();
        return { ...seen, usable };
      }, url);
      bytes = seen.bytes;
      if (round < 0) continue;
      paints.push(seen.paint);
      usable.push(seen.usable);
    }

    const list = { name: "todo", arguments: { action: "list" } };
    const calls = Array.from({ length: 45 }, () => list);
    const answers = Array.from({ length: 25 }, (_, step) => ({ text: `Step ${step}.`, tool_calls: calls }));
    const long = await startRun(
      server,
      scripted([...answers, "Done."], { tools: ["tool-todo"], limits: { max_tool_calls: 2_000 } }),
    );
    await runWith(server, long, "completed");
    const { body: { data: [last] } } = await server.get(`/v1/runs/${long}/events?after=5000&limit=1`);
    if (!last) throw new Error("The run must have more than 5,000 entries");
    const scrolled = await browser.run(async ({ page }, { url, record }) => {
      await page.goto(url);
      const log = page.getByRole("listbox", { name: "Entries of the log" });
      await log.getByRole("option", { name: /run:end/ }).waitFor();
      await log.hover();
      await page.evaluate(record);
      for (let turn = 0; turn < 100; turn++) await page.mouse.wheel(0, -400);
      await page.waitForFunction(
        "Number(document.querySelector('[role=option]').getAttribute('aria-posinset')) < 4500",
      );
      for (let turn = 0; turn < 100; turn++) await page.mouse.wheel(0, 200);
      return await page.evaluate<Smoothness>("stopRecording()");
    }, { url: `${url}/#/runs/${long}`, record: RECORD });

    const { body: { id } } = await server.post("/v1/runs", {
      plan_ref: "clock",
      prompt: "Count",
      background: true,
    });
    const streamed = await browser.run(async ({ page }, { url, record }) => {
      await page.goto("about:blank");
      await page.goto(url);
      await page.getByText(/^0@/).first().waitFor();
      await page.evaluate(record);
      await page.getByRole("log", { name: "Conversation" }).getByText("completed").waitFor({
        timeout: 30_000,
      });
      return await page.evaluate<Smoothness>("stopRecording()");
    }, { url: `${url}/#/runs/${id}`, record: RECORD });

    const paint_ms = median(paints);
    const usable_ms = median(usable);
    print(`page and its files: ${(bytes / 1_000).toFixed(1)} kB compressed; target ≤ 60`);
    print(
      `first paint, empty cache: ${paint_ms.toFixed(0)} ms; target ≤ 300. Prompt there: ${
        usable_ms.toFixed(0)
      } ms`,
    );
    print();
    const rowOf = (
      name: string,
      { fps, p50, p99, max, longest_task }: Smoothness,
    ) => [name, fps, p50, p99, max, longest_task];
    print(tableOf(["", "frames/s", "frame p50 ms", "p99 ms", "max ms", "longest task ms"], [
      rowOf("5,000 entries, scrolled", scrolled),
      rowOf("1,000 deltas/s for 5 s", streamed),
    ]));
    report("page", { bytes, paint_ms, usable_ms, scrolled, streamed });
  });
} finally {
  await endBrowser();
  await Deno.remove(folder, { recursive: true });
}
