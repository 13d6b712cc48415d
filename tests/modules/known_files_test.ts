/** What the model knows of files, over the runs of one session, each with its own mount of the module. */
import fc from "fast-check";
import type { JsonObject } from "preamp";
import { TestCoordinator } from "preamp/testing";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import { toToolResult } from "../../src/sdk/tools.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

const CHANGED = /has changed since it was read: read it again/;
const NOT_READ = /exists and was not read in this conversation: read it before all of it is replaced/;

interface Run {
  readonly coordinator: TestCoordinator;
  /** Resolves to null, or to why the call failed. */
  call(tool: string, input: JsonObject): Promise<string | null>;
  patch(...lines: string[]): Promise<string | null>;
}

interface Kit {
  readonly folder: string;
  readonly session_state: JsonObject;
  /** Begins a run of the session. */
  run(dialect?: "plain" | "patch"): Promise<Run>;
  put(name: string, text: string): Promise<void>;
  text(name: string): Promise<string>;
}

async function withSession(use: (kit: Kit) => Promise<void>, session_state: JsonObject = {}): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = await Deno.realPath(temporary.path);
  await use({
    folder,
    session_state,
    async run(dialect = "plain") {
      const permissions = { read: [folder], write: [folder] };
      const coordinator = new TestCoordinator({ permissions, session_state });
      await filesystem.mount(coordinator, { dialect });
      const call: Run["call"] = async (name, input) => {
        const { success, error } = toToolResult(await coordinator.tools[name]!.execute(input));
        return success ? null : String(error?.message);
      };
      const patch = (...lines: string[]) =>
        call("apply_patch", { patch: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n") });
      return { coordinator, call, patch };
    },
    put: (name, text) => Deno.writeTextFile(`${folder}/${name}`, text),
    text: (name) => Deno.readTextFile(`${folder}/${name}`),
  });
}

Deno.test("a file that was read in one run may be replaced in the next one, unless it has changed", () =>
  withSession(async ({ run, put, text }) => {
    await put("a", "one\n");
    assertEquals(await (await run()).call("read", { path: "a" }), null);
    assertEquals(await (await run()).call("write", { path: "a", content: "two\n" }), null);
    assertEquals(await (await run()).call("write", { path: "a", content: "three\n" }), null); // it wrote it
    await put("a", "three\nmine\n");
    for (const dialect of ["plain", "patch"] as const) {
      const { call, patch } = await run(dialect);
      const refused = dialect === "plain"
        ? [
          await call("write", { path: "a", content: "four\n" }),
          await call("edit", { path: "a", old_string: "three", new_string: "four" }),
        ]
        : [
          await patch("*** Update File: a", "-three", "+four"),
          await patch("*** Delete File: a"),
          await patch("*** Update File: a", "*** Move to: b"),
          await patch("*** Add File: a", "+four"),
        ];
      for (const reason of refused) assertMatch(String(reason), CHANGED);
    }
    assertEquals(await text("a"), "three\nmine\n");
    const { call } = await run();
    await call("read", { path: "a" });
    assertEquals(await call("write", { path: "a", content: "four\n" }), null);
  }));

Deno.test("all of a file is replaced only when it was read; a part of it names its text itself", () =>
  withSession(async ({ run, put, text }) => {
    for (const name of ["a", "b", "c"]) await put(name, "one\ntwo\n");
    await put("empty", "");
    const plain = await run();
    assertMatch(String(await plain.call("write", { path: "a", content: "x" })), NOT_READ);
    assertEquals(await plain.call("edit", { path: "a", old_string: "one", new_string: "1" }), null);
    // its own edit shows the model no more of the file
    assertMatch(String(await plain.call("write", { path: "a", content: "x" })), NOT_READ);
    assertEquals(await plain.call("write", { path: "empty", content: "x" }), null); // there is nothing to lose
    assertEquals(await plain.call("write", { path: "new", content: "x" }), null);
    assertEquals(await plain.call("write", { path: "new", content: "y" }), null);
    const patches = await run("patch");
    assertEquals(await patches.patch("*** Update File: b", "-one", "+1"), null);
    for (const patch of [["*** Add File: b", "+x"], ["*** Update File: new", "*** Move to: b"]]) {
      assertMatch(String(await patches.patch(...patch)), NOT_READ);
    }
    assertEquals(await patches.patch("*** Update File: c", "*** Move to: d"), null);
    assertMatch(String(await patches.patch("*** Add File: d", "+x")), NOT_READ);
    assertEquals(await patches.patch("*** Update File: new", "*** Move to: e"), null);
    assertEquals(await patches.patch("*** Add File: e", "+known under its new name"), null);
    assertEquals([await text("a"), await text("b"), await text("d")], ["1\ntwo\n", "1\ntwo\n", "one\ntwo\n"]);
  }));

Deno.test("a file that was deleted by the model and exists again is not known", () =>
  withSession(async ({ run, put, text }) => {
    const { patch } = await run("patch");
    assertEquals(await patch("*** Add File: a", "+one"), null);
    assertEquals(await patch("*** Delete File: a"), null);
    await put("a", "one\n");
    assertMatch(String(await patch("*** Add File: a", "+two")), NOT_READ);
    assertEquals(await text("a"), "one\n");
  }));

Deno.test("a change is one of the bytes, whatever size and time say", () =>
  withSession(async ({ folder, run, put }) => {
    await put("a", "one\n");
    await Deno.utime(`${folder}/a`, 1, 1);
    const { call } = await run();
    await call("read", { path: "a" });
    await Deno.utime(`${folder}/a`, 2, 2);
    assertEquals(await call("edit", { path: "a", old_string: "one", new_string: "two" }), null);
    const { mtime } = await Deno.stat(`${folder}/a`);
    const file = await Deno.open(`${folder}/a`, { write: true });
    await file.write(new TextEncoder().encode("2wo\n"));
    file.close();
    await Deno.utime(`${folder}/a`, mtime!, mtime!);
    assertMatch(String(await call("write", { path: "a", content: "x" })), CHANGED);
  }));

Deno.test("a file that another program changes while the call changes it is left as it is", () =>
  withSession(async ({ run, put, text }) => {
    for (const name of ["a", "new"]) {
      const { call, coordinator } = await run();
      if (name === "a") await put("a", "one\n");
      await call("read", { path: "a" });
      coordinator.registerCapability("session.keep_before", async () => { // the last step before it is made
        await put(name, "mine\n");
        return null;
      });
      assertMatch(
        String(await call("write", { path: name, content: "two\n" })),
        /was changed by another program just now: read it again/,
      );
      assertEquals(await text(name), "mine\n");
    }
  }));

Deno.test("no state of a file is lost that the model has not seen, whatever is read, written and edited", async () => {
  type Step = {
    who: "agent" | "person";
    file: string;
    text: string;
    tool: "read" | "write" | "edit" | "run";
  };
  const step: fc.Arbitrary<Step> = fc.record({
    who: fc.constantFrom("agent", "person"),
    file: fc.constantFrom("a", "b"),
    text: fc.constantFrom("one", "two", "three"),
    tool: fc.constantFrom("read", "write", "edit", "run"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await withSession(async ({ run, put, text }) => {
        let agent = await run();
        const seen = new Map<string, string>(); // file → what the model knows of it
        for (const { who, file, text: content, tool } of steps) {
          const before = await text(file).catch(() => null);
          if (who === "person") await put(file, content);
          else if (tool === "run") agent = await run();
          else if (tool === "read") {
            if (await agent.call("read", { path: file }) === null) seen.set(file, before!);
          } else if (tool === "write") {
            const refused = await agent.call("write", { path: file, content });
            assertEquals(refused === null, before === null || seen.get(file) === before);
            if (refused === null) seen.set(file, content);
          } else {
            const refused = await agent.call("edit", { path: file, old_string: "t", new_string: "T" });
            const is_stale = seen.has(file) && seen.get(file) !== before;
            if (is_stale) assert(refused !== null);
            if (refused === null && seen.has(file)) seen.set(file, await text(file));
          }
        }
      });
    }),
    { numRuns: 60 },
  );
});

Deno.test("the session has room for the newest known files; a run knows all of its own", () =>
  withSession(async ({ run, session_state }) => {
    session_state["other module"] = "x".repeat(1000);
    const name = (number: number) => `${"n".repeat(180)}${number}`;
    const first = await run();
    for (let number = 0; number < 400; number++) {
      assertEquals(await first.call("write", { path: name(number), content: "x" }), null);
    }
    assert(JSON.stringify(session_state).length < 34_000);
    assertEquals(session_state["other module"], "x".repeat(1000));
    assertEquals(await first.call("write", { path: name(0), content: "y" }), null);
    const next = await run();
    assertEquals(await next.call("write", { path: name(399), content: "y" }), null);
    assertMatch(String(await next.call("write", { path: name(1), content: "y" })), NOT_READ);
  }));

Deno.test("a run knows the files that it read when the session has no room", () => {
  const full = new Proxy({}, {
    set() {
      throw new RangeError("a session keeps at most 2 bytes");
    },
  });
  return withSession(async ({ run, put }) => {
    await put("a", "one\n");
    const { call } = await run();
    assertEquals(await call("read", { path: "a" }), null);
    assertEquals(await call("write", { path: "a", content: "two\n" }), null);
  }, full);
});
