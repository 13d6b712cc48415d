/** Mounting the modules of a plan. */
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import type { Coordinator, JsonObject, Orchestrator } from "../../src/sdk/types.ts";
import { calls, hook, kit, type TestModule, tool } from "../support/sessions.ts";

const orchestrator: Orchestrator = {
  execute: (_prompt, _context, _providers, _tools, _hooks) => Promise.resolve("done"),
};

Deno.test("mount may return metadata; a name in provides that is not mounted is a warning", async () => {
  const { session, warnings, data } = kit({
    tools: [async (coordinator) => {
      await coordinator.mount("tools", tool("my_tool"));
      return { name: "tool-my-tool", version: "0.1.0", provides: ["my_tool", "other"] };
    }],
  });
  await session.initialize();
  assertEquals(warnings, [{
    code: "module_provides_missing",
    message: 'Module "tool-0" lists other in provides, but did not mount it',
  }]);
  await session.cleanup("completed");
  assertEquals(data("session:cleanup"), [{ ran: 0, failed: [] }]);
});

Deno.test("a module that is mounted under its instance_id provides what it lists", async () => {
  const { session, warnings, data } = kit({
    tools: [{
      instance_id: "mine",
      mount: async (coordinator) => {
        await coordinator.mount("tools", tool("my_tool"));
        return { name: "tool-my-tool", version: "0.1.0", provides: ["my_tool"] };
      },
    }],
  });
  await session.initialize();
  assertEquals([data("module:mounted").at(-1)?.names, warnings], [["mine"], []]);
});

Deno.test("mount may return an instance: it is mounted under its name, and closed", async () => {
  let closed = 0;
  const { session } = kit({
    tools: [
      () => ({ ...tool("returned"), close: () => void closed++ }),
      async (coordinator) => {
        const own = tool("mounted");
        await coordinator.mount("tools", own, "as_this");
        return own;
      },
    ],
  });
  await session.initialize();
  assertEquals(session.mounts.tools.names, ["returned", "as_this"]);
  await session.cleanup("completed");
  assertEquals(closed, 1);
});

Deno.test("a provider whose mount returns null is skipped as not configured", async () => {
  const { session, data } = kit({ providers: [() => null, ["done"]] });
  await session.initialize();
  assertEquals(session.mounts.providers.names, ["mock2"]);
  assertEquals(data("module:skipped").map((skipped) => skipped.reason), ["not_configured"]);
});

Deno.test('mount("session", …, {name}) fills the single slots', async () => {
  const { session } = kit({
    orchestrator: async (coordinator) =>
      await coordinator.mount("session", orchestrator, { name: "orchestrator" }),
    context: async (coordinator) =>
      await coordinator.mount("session", new MockContextManager(), { name: "context" }),
  });
  await session.initialize();
  assert(session.mounts.orchestrator === orchestrator);
  assert(session.mounts.context !== null);
});

Deno.test("mount() refuses unknown mount points and missing names", async () => {
  const refused: string[] = [];
  const listed: string[] = [];
  const attempt = async (run: () => Promise<void>) => refused.push((await assertRejects(run)).message);
  const { session } = kit({
    tools: [async (coordinator) => {
      await attempt(() => coordinator.mount("nonsense", {}));
      await attempt(() => coordinator.mount("tools", { execute() {} }));
      await attempt(() => coordinator.mount("hooks", {}));
      await attempt(() => coordinator.mount("session", {}, "tools"));
      await attempt(() => coordinator.mount("tools", null as unknown as object));
      await attempt(() => coordinator.unmount("tools"));
      await attempt(() => coordinator.unmount("nonsense"));
      await coordinator.mount("tools", tool("fine"));
      await coordinator.unmount("tools", "absent");
      coordinator.hooks.register("tool:pre", function own() {});
      listed.push(...coordinator.hooks.listHandlers("tool:pre")["tool:pre"] ?? []);
    }],
  });
  await session.initialize();
  assertEquals(listed, ["own"]); // before the mount is committed
  assertMatch(refused[0]!, /^Unknown mount point "nonsense"/);
  assertEquals(refused[1], 'Name required for tools: object 2 that module "tool-0" mounts has none');
  assertMatch(refused[2]!, /or call coordinator\.hooks\.register/);
  assertMatch(refused[3]!, /name must be "orchestrator" or "context"/);
  assertMatch(refused[4]!, /received null/);
  assertEquals(refused[5], "Name required to unmount from tools");
  assertMatch(refused[6]!, /^Unknown mount point/);
  assertEquals(session.mounts.tools.names, ["fine"]);
});

Deno.test("a tool mounted under a name other than its own is found by both, with one warning", async () => {
  const inputs: JsonObject[] = [];
  const provider = new MockProvider({ responses: [calls(["my_tool", { a: 1 }]), "done"] });
  const { run, warnings, data } = kit({
    providers: [provider],
    tools: [
      async (coordinator) =>
        await coordinator.mount("tools", tool("my_tool", (input) => inputs.push(input)), "my-tool"),
    ],
  });
  assertEquals((await run()).status, "completed");
  assertEquals(inputs, [{ a: 1 }]);
  assertEquals(provider.requests[0]!.tools?.map((spec) => spec.name), ["my_tool"]);
  assertEquals(data("module:mounted").at(-1)?.names, ["my-tool"]);
  assertEquals(warnings.map((warning) => warning.code), ["tool_name_mismatch"]);
});

Deno.test("mount runs exactly once, however often the session is initialised and run", async () => {
  let mounts = 0;
  const { session, run } = kit({
    tools: [async (coordinator) => {
      mounts++;
      await coordinator.mount("tools", tool("t"));
    }],
  });
  await Promise.all([session.initialize(), session.initialize()]);
  await run();
  await run();
  assertEquals(mounts, 1);
});

Deno.test("the section of the plan decides the type of a module, whatever its id", async () => {
  const { session, data } = kit({
    hooks: [{
      ...{ id: "hooks-tool-dedupe" },
      mount: (coordinator) => void coordinator.hooks.register("x", () => null),
    }],
  });
  await session.initialize();
  const { module_id, type, names } = data("module:mounted").at(-1)!;
  assertEquals([module_id, type, names], ["hooks-tool-dedupe", "hook", ["x"]]);
});

Deno.test("modules are mounted in the order of the plan, hooks last, or first with hooks_first", async () => {
  const order = async (hooks_first: boolean) => {
    const { session, data } = kit({
      session: { hooks_first },
      tools: [tool("t")],
      hooks: [hook("x", () => null)],
    });
    await session.initialize();
    return data("module:mounted").map((mounted) => mounted.type);
  };
  assertEquals(await order(false), ["orchestrator", "context", "provider", "tool", "hook"]);
  assertEquals(await order(true), ["orchestrator", "context", "hook", "provider", "tool"]);
});

Deno.test("a hook module that registers nothing is skipped", async () => {
  const { session, data } = kit({ hooks: [() => null, () => ({ name: "hook", provides: [] })] });
  await session.initialize();
  assertEquals(data("module:skipped").map((skipped) => skipped.reason), [
    "protocol_compliance",
    "protocol_compliance",
  ]);
  assertMatch(String(data("module:skipped")[0]?.message), /No hook was registered/);
});

Deno.test("a hook may be returned as an instance that names its events", async () => {
  const heard: string[] = [];
  const { run } = kit({
    hooks: [
      () => ({
        events: ["prompt:submit", "tool:*"],
        priority: 5,
        handler: (event: string) => void heard.push(event),
      }),
    ],
  });
  await run();
  assertEquals(heard, ["prompt:submit"]);
});

Deno.test("a module that returns {skipped} is skipped with that reason", async () => {
  const { session, data } = kit({ tools: [() => ({ skipped: "no licence" })] });
  await session.initialize();
  assertEquals([data("module:skipped")[0]?.reason, data("module:skipped")[0]?.message], [
    "not_configured",
    "no licence",
  ]);
});

Deno.test("mount() after the start checks and guards the object, which is available immediately", async () => {
  let late: Coordinator | null = null;
  const provider = new MockProvider({ responses: [calls(["add"]), calls(["new"], ["new2"]), "done"] });
  const { run, data } = kit({
    providers: [provider],
    tools: [async (coordinator) => {
      late = coordinator;
      await coordinator.mount(
        "tools",
        tool("add", async () => {
          await assertRejects(() => late!.mount("tools", { name: "bad" }), Error, "tool_execute");
          late!.mount("tools", tool("new"));
          await late!.unmount("tools", "add");
          return Object.keys(late!.tools).join();
        }),
      );
    }],
  });
  const outcome = await run();
  assertEquals(outcome.status, "completed");
  assertEquals(provider.requests[1]!.tools?.map((spec) => spec.name), ["new"]);
  assertEquals(data("tool:post").map((post) => (post.result as JsonObject).output), ["new", "ok"]);
});

Deno.test("a module with an instance_id is mounted under that id", async () => {
  const provider: TestModule = {
    instance_id: "second",
    mount: async (coordinator) => await coordinator.mount("providers", new MockProvider({ response: "two" })),
  };
  const { session, data } = kit({ providers: [["one"], provider] });
  await session.initialize();
  assertEquals(session.mounts.providers.names, ["mock", "second"]);
  assertEquals(
    data("module:mounted").filter((one) => one.type === "provider").map((one) => [one.module_id, one.names]),
    [
      ["provider-0", ["mock"]],
      ["second", ["second"]],
    ],
  );
});

Deno.test("the maps of tools and providers are live and read-only", async () => {
  const attempts: string[] = [];
  const { session } = kit({
    tools: [tool("t", undefined, { risk: "high", requires_approval: true })],
    hooks: [(coordinator) => {
      const tools: Record<string, unknown> = coordinator.tools;
      const attempt = (name: string, change: () => unknown) => {
        try {
          change();
        } catch {
          attempts.push(name);
        }
      };
      attempt("set", () => tools.evil = tool("evil"));
      attempt("delete", () => delete tools.t);
      attempt("define", () => Object.defineProperty(tools, "t", { value: tool("evil") }));
      attempt("freeze", () => Object.freeze(tools));
      attempt("risk", () => (tools.t as { risk: string }).risk = "low");
      attempt("execute", () => (tools.t as { execute: unknown }).execute = () => "evil");
      attempt(
        "complete",
        () => (coordinator.providers.mock as { complete: unknown }).complete = () => "evil",
      );
      attempt("limits", () => (coordinator.limits as { max_tool_calls: number }).max_tool_calls = 1e9);
      attempt("config", () => (coordinator.config as JsonObject).hooks = []);
      coordinator.hooks.register("x", () => null);
    }],
  });
  await session.initialize();
  assertEquals(attempts, [
    "set",
    "delete",
    "define",
    "freeze",
    "risk",
    "execute",
    "complete",
    "limits",
    "config",
  ]);
  assertEquals(session.mounts.tools.names, ["t"]);
});
