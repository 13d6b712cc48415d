/** `context-persistent`: memory files, and history that comes back through the session. */
import { errorCode, type JsonObject, type Permissions } from "preamp";
import { testContext, TestCoordinator } from "preamp/testing";
import * as contextPersistent from "../../modules/context-persistent/mod.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import type { Caller } from "../../src/runs/types.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { addAll, groups, user } from "../support/context.ts";
import { temporaryFolder } from "../support/folder.ts";

testContext("context-persistent", () => contextPersistent);

async function withFiles(
  texts: Record<string, string>,
  body: (folder: string) => Promise<void>,
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  for (const [name, text] of Object.entries(texts)) await Deno.writeTextFile(`${folder}/${name}`, text);
  await body(folder);
}

/** A session whose plan grants reading of these places. */
async function open(config: JsonObject, read: unknown): Promise<TestCoordinator> {
  const permissions = read === undefined ? {} : { read } as Permissions;
  const coordinator = new TestCoordinator({ permissions });
  await contextPersistent.mount(coordinator, config);
  return coordinator;
}

Deno.test("memory files stand first in every view, compacted or not, and in no history", async () => {
  await withFiles(
    { "tone.md": "Write short sentences.", "facts.txt": "The sky is blue." },
    async (folder) => {
      const memory_files = [`${folder}/tone.md`, `${folder}/facts.txt`];
      const { context } = await open({ memory_files }, [folder]);
      assert(context);
      await addAll(context, [{ role: "system", content: "Be brief." }, user("hi"), ...groups(30, 300)]);
      for (const token_budget of [100_000, 4000]) {
        const view = await context.getMessagesForRequest({ token_budget });
        assertEquals(view.slice(0, 3).map((message) => [message.role, message.content]), [
          ["system", "[Context from tone.md]\n\nWrite short sentences."],
          ["system", "[Context from facts.txt]\n\nThe sky is blue."],
          ["system", "Be brief."],
        ]);
      }
      assertEquals((await context.getMessages()).length, 62);
      await context.clear();
      assertEquals((await context.getMessagesForRequest()).length, 2);
    },
  );
});

Deno.test("mount() reads only what the plan grants, and follows links before it compares", async () => {
  await withFiles({ "secret.txt": "do not read" }, async (folder) => {
    const file = `${folder}/secret.txt`;
    await Deno.mkdir(`${folder}/open`);
    await Deno.symlink(file, `${folder}/open/link.txt`);
    for (const read of [undefined, false, [], ["/nowhere"], [`${folder}/open`]]) {
      const memory_files = [read?.toString().includes("open") ? `${folder}/open/link.txt` : file];
      const error = await assertRejects(() => open({ memory_files }, read));
      assertEquals(errorCode(error), "tool_permission_denied");
    }
    await open({ memory_files: [file] }, [file]);
    await open({ memory_files: [file] }, true);
  });
});

Deno.test("mount() refuses files that are missing, no text, or alone larger than max_tokens", async () => {
  await withFiles({ "long.txt": "word ".repeat(3000) }, async (folder) => {
    const missing = await assertRejects(() => open({ memory_files: [`${folder}/none`] }, true));
    assertEquals(errorCode(missing), "module_invalid");
    await Deno.writeFile(`${folder}/bytes`, new Uint8Array([0xff, 0xfe, 0x80]));
    assertEquals(
      errorCode(await assertRejects(() => open({ memory_files: [`${folder}/bytes`] }, true))),
      "module_invalid",
    );
    assertEquals(
      errorCode(await assertRejects(() => open({ memory_files: [folder] }, true))),
      "module_invalid",
    );
    const large = await assertRejects(() =>
      open({ memory_files: [`${folder}/long.txt`], max_tokens: 2000 }, true)
    );
    assertEquals(errorCode(large), "context_overflow");
    for (const memory_files of ["one", [7], ["relative.md"]]) {
      assertEquals(errorCode(await assertRejects(() => open({ memory_files }, true))), "module_invalid");
    }
  });
});

Deno.test("history and decisions come back when the process's session has ended and is opened again", async () => {
  const caller: Caller = { name: "library", namespace: "test", origin: "operator" };
  const store = new MemoryStore();
  const answers = Array.from(
    { length: 12 },
    (_, index) => ({ text: `answer ${index}: ${"word ".repeat(900)}` }),
  );
  const config = { responses: answers, context_window: 8000, max_output_tokens: 500 };
  const plan = {
    session: { orchestrator: "loop-basic", context: { module: "context-persistent" } },
    providers: [{ module: "provider-mock", config }],
  };
  let session_id: string | undefined;
  let level = 0;
  for (let turn = 0; turn < 12; turn++) {
    // A runtime of its own each time: nothing but the store is carried over, as when a process has ended.
    const runtime = createRuntime({ policy: defaultPolicy(), store });
    const request = session_id === undefined ? { plan } : { session_id };
    const handle = await runtime.runs.create({ prompt: `question ${turn}`, ...request }, caller);
    const run = await handle.settled("end");
    session_id = handle.session_id;
    assertEquals(run.status, "completed", JSON.stringify(run.error));
    assert(run.context.level >= level && run.context.tokens < run.context.budget, "decisions come back");
    if (level > 0 && run.context.compactions === 0) {
      assert(run.context.tokens < 6000, "what was left out stays out, without another compaction");
    }
    level = run.context.level;
    const { data: messages } = await runtime.runs.sessions.messages(caller, session_id);
    assertEquals(messages.length, (turn + 1) * 2);
    assertStringIncludes(JSON.stringify(messages[0]), "question 0");
    await runtime.drain(0);
  }
  assert(level > 0);
});
