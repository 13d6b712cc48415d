import type { JsonObject, Permissions } from "preamp";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { type Fake, fakeCoordinator } from "../support/coordinator.ts";
import { Redactor } from "../../src/policy/redact.ts";
import { mount, onSessionReady } from "../../modules/hooks-logging/mod.ts";
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

Deno.test("hooks-logging registers at priority 100 for all canonical events except deltas, and never denies", () =>
  withLog({}, async ({ handlers, close }) => {
    assertEquals(
      new Set(handlers.map(({ priority, name, fail_closed }) => `${priority} ${name} ${fail_closed}`)),
      new Set(["100 hooks-logging false"]),
    );
    assertEquals(
      handlers.map((each) => each.event).join(" "),
      "session:start session:end session:fork session:resume prompt:submit prompt:complete plan:start plan:end " +
        "provider:request provider:response provider:retry provider:error provider:throttle " +
        "provider:tool_sequence_repaired provider:resolve llm:request llm:response content_block:start " +
        "content_block:end thinking:final tool:pre tool:post tool:error context:pre_compact context:post_compact " +
        "context:compaction context:include orchestrator:complete execution:start execution:end user:notification " +
        "artifact:write artifact:read policy:violation approval:required approval:granted approval:denied " +
        "cancel:requested cancel:completed module:on_session_ready_failed",
    );
    await close();
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

Deno.test("hooks-logging subscribes to the events in observability.events when the session is ready", () =>
  withLog(
    { additional_events: ["extra:one", "tool:pre"] },
    async ({ coordinator, emit, handlers, lines }) => {
      const contribute = (events: unknown) =>
        coordinator.registerContributor("observability.events", "a-module", () => events);
      contribute(["my-module:started", "tool:pre", "my-module:delta", "my:*", 7]);
      contribute(Promise.resolve(["late:one"]));
      contribute("alone:one");
      coordinator.registerCapability("observability.events", ["legacy:one"]);
      await emit("my-module:started", { version: "0" });
      await onSessionReady(coordinator);
      await onSessionReady(coordinator);
      for (
        const event of [
          "my-module:started",
          "my-module:delta",
          "late:one",
          "alone:one",
          "legacy:one",
          "extra:one",
        ]
      ) {
        await emit(event, { version: "1.0.0" });
      }
      assertEquals(
        (await lines()).map(({ event, data }) => `${event} ${(data as JsonObject).version}`),
        [
          "my-module:started 1.0.0",
          "late:one 1.0.0",
          "alone:one 1.0.0",
          "legacy:one 1.0.0",
          "extra:one 1.0.0",
        ],
      );
      assertEquals(handlers.filter((each) => each.event === "tool:pre").length, 1);
    },
  ));

Deno.test("hooks-logging separates the sessions of one process", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const one = await mounted(folder);
  const two = await mounted(folder);
  one.coordinator.registerContributor("observability.events", "m", () => ["only:one"]);
  await onSessionReady(one.coordinator);
  await onSessionReady(two.coordinator);
  await two.emit("only:one");
  await one.emit("only:one");
  await two.close();
  assertEquals((await one.lines()).length, 1);
});

Deno.test("hooks-logging writes both logs when a session has two instances", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const paths = [`${folder}/a.jsonl`, `${folder}/b.jsonl`];
  const fake = fakeCoordinator({}, {}, { write: true });
  const cleanups: (() => Promise<void>)[] = [];
  for (const path of paths) cleanups.push(await mount(fake.coordinator, { path }) as () => Promise<void>);
  fake.coordinator.registerContributor("observability.events", "m", () => ["my:event"]);
  await onSessionReady(fake.coordinator);
  await onSessionReady(fake.coordinator);
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

Deno.test("hooks-logging keeps the file below max_bytes with one rotation", () =>
  withLog({ max_bytes: 65_536 }, async ({ emit, close, path }) => {
    for (let index = 0; index < 60; index++) {
      await emit("tool:post", { index, text: "x".repeat(3_000) });
      if (index % 5 === 4) await close(); // flushes, as the end of a session does
    }
    const [now, before] = [await Deno.readTextFile(path), await Deno.readTextFile(`${path}.1`)];
    assert(now.length <= 65_536 && before.length <= 65_536);
    const indexes = parse(before + now).map((line) => (line.data as JsonObject).index as number);
    assertEquals(indexes, Array.from({ length: indexes.length }, (_, at) => 60 - indexes.length + at));
    assertEquals(await namesIn(path.slice(0, path.lastIndexOf("/"))), ["events.jsonl", "events.jsonl.1"]);
  }));

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
  await assertRejects(() => mount(coordinator, { path }), Error, "permissions.write of its entry grants");
  assertEquals(handlers, []);
  assertEquals(await namesIn(`${folder}/other`), []);
  await (await mounted(folder, {}, [`${folder}/other`])).close(); // where the link leads
});

const BAD: [JsonObject, string][] = [
  [{ path: "logs/a.jsonl" }, "config.path: must be an absolute path"],
  [{ path: 7 }, "config.path: must be text or null: received 7"],
  [{ stderr: "yes" }, "config.stderr: must be true or false"],
  [{ deltas: 1 }, "config.deltas: must be true or false: received 1"],
  [{ max_bytes: 1_000 }, "config.max_bytes: must be a whole number of at least 65536: received 1000"],
  [{ additional_events: "a" }, "config.additional_events: must be a list"],
  [{ additional_events: ["a", "*"] }, "config.additional_events[1]: must be an event name"],
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
