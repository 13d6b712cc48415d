import type { JsonObject, Permissions } from "preamp";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { type Fake, fakeCoordinator } from "../support/coordinator.ts";
import { Redactor } from "../../src/policy/redact.ts";
import { mount } from "../../modules/hooks-logging/mod.ts";
import { temporaryFolder } from "../support/folder.ts";

interface Logging extends Fake {
  path: string;
  /** Closes the log and resolves to its parsed lines. */
  lines(): Promise<JsonObject[]>;
  close(): Promise<void>;
}

/** Runs `test` with the module mounted on a file in a temporary folder. */
async function withLog(config: JsonObject, test: (log: Logging) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await test(await mounted(folder, config));
}

async function mounted(folder: string, config: JsonObject = {}, write: unknown = [folder]): Promise<Logging> {
  const path = `${folder}/logs/events.jsonl`;
  const fake = fakeCoordinator({}, {}, { write } as Permissions);
  const close = await mount(fake.coordinator, { path, ...config }) as () => Promise<void>;
  const lines = async () => {
    await close();
    return parse(await Deno.readTextFile(path));
  };
  return { ...fake, path, lines, close };
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder), (entry) => entry.name)).sort();
}

function parse(text: string): JsonObject[] {
  return text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
}

Deno.test("hooks-logging writes one line for each event, in Amplifier's format", () =>
  withLog({}, async ({ emit, lines, path }) => {
    await emit("tool:pre", {
      parent_id: null,
      turn_id: "turn_1",
      iteration: 1,
      tool_name: "calculator",
      tool_input: { expression: "6 × 7" },
    });
    assertEquals(await lines(), [{
      ts: "2026-01-02T03:04:05.006Z",
      lvl: "INFO",
      schema: { name: "amplifier.log", ver: "1.0.0" },
      event: "tool:pre",
      session_id: "ses_1",
      turn_id: "turn_1",
      iteration: 1,
      data: { tool_name: "calculator", tool_input: { expression: "6 × 7" } },
    }]);
    assertEquals(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
  }));

Deno.test("hooks-logging hears every event but deltas after all other handlers, and never denies", () =>
  withLog({}, async ({ handlers, emit, lines }) => {
    assertEquals(handlers.map(({ event, priority, fail_closed }) => [event, priority, fail_closed]), [[
      "*",
      100,
      false,
    ]]);
    const events = [
      "tool:pre",
      "content_block:delta",
      "my-module:started",
      "approval:required",
      "my-module:x_delta",
    ];
    for (const event of events) assertEquals((await emit(event)).action, "continue");
    assertEquals((await lines()).map(({ event }) => event), [
      "tool:pre",
      "my-module:started",
      "approval:required",
    ]);
  }));

Deno.test("hooks-logging logs deltas when deltas is on", () =>
  withLog({ deltas: true }, async ({ emit, lines }) => {
    await emit("content_block:delta", { delta: "6 × 7" });
    await emit("thinking:delta", { text: "hm" });
    assertEquals((await lines()).map(({ event, lvl }) => `${event} ${lvl}`), [
      "content_block:delta DEBUG",
      "thinking:delta DEBUG",
    ]);
  }));

Deno.test("hooks-logging writes both logs when a session has two instances", async () => {
  await using temporary = await temporaryFolder();
  const fake = fakeCoordinator({}, {}, { write: true });
  const paths = [`${temporary.path}/a.jsonl`, `${temporary.path}/b.jsonl`];
  const cleanups: (() => Promise<void>)[] = [];
  for (const path of paths) cleanups.push(await mount(fake.coordinator, { path }) as () => Promise<void>);
  await fake.emit("my:event");
  for (const cleanup of cleanups) await cleanup();
  for (const path of paths) {
    assertEquals(parse(await Deno.readTextFile(path)).map((line) => line.event), ["my:event"]);
  }
});

Deno.test("hooks-logging writes events as redacted by session.redact, synchronous or asynchronous", () =>
  withLog({}, async ({ coordinator, emit, lines }) => {
    const redactor = new Redactor(["hunter2"]);
    coordinator.registerCapability(
      "session.redact",
      (event: string, data: JsonObject) => redactor.redactEvent(event, data),
    );
    const data = { tool_input: { password: "tulips" }, said: "hunter2" };
    await emit("tool:pre", data);
    coordinator.registerCapability(
      "session.redact",
      (event: string, data: JsonObject) => Promise.resolve(redactor.redactEvent(event, data)),
    );
    await emit("artifact:write", data);
    const [conversation, own] = await lines();
    assertEquals(conversation?.data, { tool_input: { password: "tulips" }, said: "[REDACTED]" });
    assertEquals(own?.data, { tool_input: { password: "[REDACTED]" }, said: "[REDACTED]" });
  }));

Deno.test("hooks-logging derives the level from the event", () =>
  withLog({}, async ({ emit, lines }) => {
    await emit("tool:error");
    await emit("module:on_session_ready_failed");
    await emit("policy:violation");
    await emit("approval:denied");
    await emit("user:notification", { level: "error" });
    await emit("user:notification", { level: "warning" });
    await emit("user:notification", { message: "hi" });
    assertEquals(
      (await lines()).map((line) => line.lvl),
      ["ERROR", "ERROR", "WARNING", "WARNING", "ERROR", "WARNING", "INFO"],
    );
  }));

Deno.test("hooks-logging writes lines in order and completes before the session closes", () =>
  withLog({}, async ({ emit, lines }) => {
    await Promise.all(Array.from({ length: 500 }, (_, index) => emit("tool:post", { index })));
    assertEquals(
      (await lines()).map((line) => (line.data as JsonObject).index),
      Array.from({ length: 500 }, (_, index) => index),
    );
  }));

Deno.test("hooks-logging has written the last event, which comes after its cleanup, when it is heard", () =>
  withLog({}, async ({ emit, close, path }) => {
    await close();
    await emit("session:cleanup", { ran: 1, failed: [] });
    assertEquals(parse(await Deno.readTextFile(path)).map(({ event }) => event), ["session:cleanup"]);
  }));

for (const max_files of [2, 3, 5]) {
  Deno.test(`hooks-logging rotates: ${max_files} files below max_bytes have the newest lines in order`, () =>
    withLog({ max_bytes: 65_536, max_files }, async ({ emit, close, path }) => {
      for (let index = 0; index < 130; index++) {
        await emit("tool:post", { index, text: "x".repeat(3_000) });
        if (index % 5 === 4) await close(); // flushes, as the end of a session does
      }
      const names = [path, ...Array.from({ length: max_files - 1 }, (_, at) => `${path}.${at + 1}`)];
      assertEquals(
        await namesIn(path.slice(0, path.lastIndexOf("/"))),
        names.map((name) => name.replace(/.*\//, "")),
      );
      const texts = await Promise.all(names.map((name) => Deno.readTextFile(name)));
      assert(texts.every(({ length }) => length > 0 && length <= 65_536));
      const indexes = parse(texts.reverse().join("")).map((line) =>
        (line.data as JsonObject).index as number
      );
      assertEquals(indexes, Array.from({ length: indexes.length }, (_, at) => 130 - indexes.length + at));
    }));
}

Deno.test("hooks-logging loses nothing and rotates once when two sessions share a file", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const logs = [await mounted(folder, { max_bytes: 65_536 }), await mounted(folder, { max_bytes: 65_536 })];
  for (let index = 0; index < 15; index++) {
    await Promise.all(
      logs.map((log, session) => log.emit("tool:post", { session, index, text: "x".repeat(3_000) })),
    );
    await Promise.all(logs.map((log) => log.close()));
  }
  const path = logs[0]?.path ?? "";
  const lines = parse(await Deno.readTextFile(`${path}.1`) + await Deno.readTextFile(path));
  assertEquals(lines.length, 30);
});

Deno.test("hooks-logging notifies the user once and fails its cleanup when the file cannot be written", () =>
  withLog({}, async ({ emit, emitted, close, path }) => {
    const folder = path.slice(0, path.lastIndexOf("/"));
    await Deno.remove(folder, { recursive: true });
    await emit("tool:pre");
    await assertRejects(close);
    assertEquals((await emit("tool:post")).action, "continue");
    await emit("tool:post");
    assertEquals(emitted("user:notification"), [{
      message: "The log of this session can no longer be written",
      level: "warning",
      source: "hook:hooks-logging",
    }]);
  }));

Deno.test("hooks-logging does not follow a symbolic link that replaces its file", () =>
  withLog({}, async ({ emit, close, path }) => {
    const target = `${path}.target`;
    await Deno.remove(path);
    await Deno.symlink(target, path);
    await emit("tool:pre");
    await assertRejects(close, Error, "symbolic link");
    await assertRejects(() => Deno.lstat(target), Deno.errors.NotFound);
  }));

Deno.test("hooks-logging writes to standard error when it has no path", async () => {
  const program = new URL("../fixtures/hooks_logging_stderr.ts", import.meta.url);
  const { stderr, stdout, code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-check", "--no-prompt", "--cached-only", program.href],
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stderr);
  assertEquals([code, stdout.length], [0, 0], text);
  assertEquals(parse(text).map(({ event, data }) => [event, data]), [["tool:pre", {
    tool_name: "a\u001b[31m",
  }]]);
  assert(!text.includes("\u001b"));
});

Deno.test("mount() refuses a path without a write grant in the module's plan entry", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.mkdir(`${folder}/other`);
  await Deno.symlink(`${folder}/other`, `${folder}/logs`);
  const grants: unknown[] = [
    null,
    false,
    [],
    ["logs"],
    [`${folder}/log`],
    [`${folder}/other/x`],
    [`${folder}/logs/events.jsonl`], // not the file it is rotated to
  ];
  for (const write of grants) {
    const error = await assertRejects(() => mounted(folder, {}, write));
    assertEquals((error as Error & { code: string }).code, "tool_permission_denied");
  }
  const { coordinator, handlers } = fakeCoordinator();
  const path = `${folder}/logs/events.jsonl`;
  await assertRejects(
    () => mount(coordinator, { path }),
    Error,
    "permissions.write of its entry does not cover",
  );
  assertEquals(handlers, []);
  assertEquals(await namesIn(`${folder}/other`), []);
  await (await mounted(folder, {}, [`${folder}/other`])).close(); // where the link leads
});

const BAD: [JsonObject, string][] = [
  [{ path: "logs/a.jsonl" }, "config.path: must be an absolute path"],
  [{ path: 7 }, "config.path: must be text or null: received 7"],
  [{ deltas: 1 }, "config.deltas: must be true or false: received 1"],
  [{ max_bytes: 1_000 }, "config.max_bytes: must be a whole number of at least 65536: received 1000"],
  [{ max_files: 1 }, "config.max_files: must be a whole number from 2 to 100: received 1"],
];

for (const [config, text] of BAD) {
  Deno.test(`mount() of hooks-logging refuses a config: ${text}`, async () => {
    const { coordinator, handlers } = fakeCoordinator();
    const error = await assertRejects(() => mount(coordinator, config));
    assertEquals((error as Error & { code: string }).code, "module_invalid");
    assertStringIncludes(error.message, text);
    assertEquals(handlers, []);
  });
}
