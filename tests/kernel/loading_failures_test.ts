/** Modules that cannot be mounted: which of them fail the session, and which are skipped. */
import { assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { readConfig } from "../../src/sdk/config.ts";
import { type ErrorCode, PreampError } from "../../src/sdk/errors.ts";
import type { Coordinator, JsonObject, Module, ModuleInfo, Orchestrator } from "../../src/sdk/types.ts";
import { hook, kit, type TestModule, tool, until } from "../support/sessions.ts";

const orchestrator: Orchestrator = {
  execute: (_prompt, _context, _providers, _tools, _hooks) => Promise.resolve("done"),
};

const failing: TestModule = () => {
  throw new Error("out of order");
};

Deno.test("initialize() fails with the reason when the orchestrator fails to mount", async () => {
  const { session, names } = kit({ orchestrator: failing });
  const error = await assertRejects(() => session.initialize());
  assertEquals(error.message, "Cannot initialize without orchestrator: out of order");
  assertEquals((error as unknown as { code: string }).code, "module_load_failed");
  assertEquals(names(), []);
});

Deno.test("initialize() fails and unmounts everything when the context fails to mount", async () => {
  const undone: string[] = [];
  const { session } = kit({
    orchestrator: async (coordinator) => {
      await coordinator.mount("orchestrator", orchestrator);
      return () => undone.push("orchestrator");
    },
    context: failing,
  });
  await assertRejects(
    () => session.initialize(),
    Error,
    "Cannot initialize without context manager: out of order",
  );
  assertEquals(undone, ["orchestrator"]);
  assertEquals(session.mounts.orchestrator, null);
});

Deno.test("initialize() can be called again after a failure and mounts nothing twice", async () => {
  let tries = 0;
  const heard: string[] = [];
  const { session, warnings, run } = kit({
    session: { hooks_first: true },
    hooks: [hook("session:start", () => void heard.push("start"))],
    tools: [tool("t"), { id: "tool-gone", mount: () => ({ skipped: "not today" }) }],
    context: async (coordinator) => {
      if (++tries === 1) throw new Error("not yet");
      await coordinator.mount("context", new MockContextManager());
    },
  });
  await assertRejects(() => session.initialize(), Error, "not yet");
  await run();
  assertEquals(heard, ["start"]);
  assertEquals(warnings, []);
});

Deno.test("initialize() skips a tool that fails, mounts the others and emits module:skipped", async () => {
  const { session, data } = kit({ tools: [failing, tool("good")] });
  await session.initialize();
  assertEquals(session.mounts.tools.names, ["good"]);
  assertEquals(data("module:skipped"), [
    { module_id: "tool-0", type: "tool", reason: "mount_failed", message: "out of order" },
  ]);
});

Deno.test("initialize() says in module:load_failed why a module failed, not for one that declined", async () => {
  const heard: JsonObject[] = [];
  const observer: TestModule = ({ hooks }) => {
    hooks.register("module:load_failed", (_, data) => {
      heard.push(data);
      throw new Error("a handler that fails changes nothing");
    });
  };
  const failures: readonly (readonly [TestModule, string])[] = [
    [failing, "unknown"],
    [{ module: { contract: 2 }, mount: failing } as never, "invalid_module_metadata"],
    [(coordinator) => coordinator.mount("tools", { name: "t" } as never), "validation_failed"],
    [() => {
      readConfig({ type: "object", required: ["key"] }, {});
    }, "validation_failed"],
  ];
  const { session, data } = kit({
    session: { hooks_first: true },
    hooks: [observer],
    tools: [
      ...failures.map(([module]) => module),
      { id: "tool-x", instance_id: "mine", mount: failing },
      () => ({ skipped: "not now" }),
    ],
  });
  await session.initialize();
  const failed = data("module:load_failed");
  assertEquals(failed.map(({ reason_code }) => reason_code), [
    ...failures.map(([, code]) => code),
    "unknown",
  ]);
  assertEquals(failed.at(-1), {
    module_type: "tool",
    module_id: "tool-x",
    error: "out of order",
    reason_code: "unknown",
    instance_id: "mine",
  });
  assertEquals(heard.length, failed.length);
  assertEquals(data("module:skipped").length, failed.length + 1);
});

Deno.test("initialize() maps errors of loading to reason codes", async () => {
  const codes = {
    not_found: "missing_source",
    module_invalid: "invalid_package_layout",
    module_load_failed: "invalid_entry_point",
  };
  for (const [code, reason_code] of Object.entries(codes)) {
    const unloadable = {
      get mount(): never { // read when the module is opened
        throw new PreampError(code as ErrorCode, "Cannot load it");
      },
    };
    const { session, data } = kit({ tools: [unloadable] });
    await session.initialize();
    assertEquals(data("module:load_failed").map((one) => one.reason_code), [reason_code]);
  }
});

Deno.test("initialize() fails with the reason of each provider when no provider of the plan is mounted", async () => {
  const { session } = kit({ providers: [failing] });
  const error = await assertRejects(() => session.initialize(), Error, "Cannot initialize without provider");
  const details = [{ path: "providers[0]", message: "out of order" }];
  assertEquals((error as Error & { details: unknown }).details, details, "it says why");
});

Deno.test("initialize() fails when the plan names no provider and no other module mounts one", async () => {
  const { session, entries } = kit({ providers: [] });
  const error = await assertRejects(() => session.initialize(), Error, "No providers mounted");
  const { code, details } = error as Error & { code: string; details: { path: string }[] };
  assertEquals([code, details.map(({ path }) => path)], ["module_load_failed", ["providers"]]);
  assertEquals(entries.filter(({ event }) => event === "session:start"), []);
  const other = kit({
    providers: [],
    hooks: [async (coordinator) => {
      await coordinator.mount("providers", new MockProvider());
    }],
  });
  assertEquals((await other.run()).status, "completed");
});

Deno.test("onSessionReady runs after all mounts, in order, in both spellings; a failure is an event", async () => {
  const order: string[] = [];
  const ready = (name: string, more: Partial<Module> & JsonObject): Module =>
    ({
      mount: async (coordinator: Coordinator) => {
        order.push(`mount ${name}`);
        await coordinator.mount("tools", tool(name));
      },
      ...more,
    }) as Module;
  const { session, data } = kit({
    tools: [
      ready("a", {
        onSessionReady: (coordinator) => void order.push(`ready a ${Object.keys(coordinator.tools)}`),
      }),
      ready("b", {
        onSessionReady: () => {
          throw new Error("not ready");
        },
      }),
      ready("c", { on_session_ready: () => void order.push("ready c") }),
    ],
  });
  await session.initialize();
  assertEquals(order, ["mount a", "mount b", "mount c", "ready a a,b,c", "ready c"]);
  assertEquals(data("module:on_session_ready_failed"), [{ module_id: "tool-1", error: "not ready" }]);
});

Deno.test("a mount that exceeds its timeout is abandoned, and its later calls have no effect", async () => {
  const late = Promise.withResolvers<void>();
  const { session, clock, data } = kit({
    opened: { load_timeout_s: 10 },
    tools: [async (coordinator) => {
      await late.promise;
      await coordinator.mount("tools", tool("late"));
    }],
  });
  const initialized = session.initialize();
  await until(() => clock.pending > 0);
  await clock.advance(10_000);
  await initialized;
  const message = 'Cannot mount module "tool-0": mount() did not finish within 10 s';
  assertEquals(data("module:skipped").map((one) => [one.reason, one.message]), [["mount_failed", message]]);
  late.resolve();
  await Promise.resolve();
  assertEquals(Object.keys(session.mounts.tools.view), []);
  assertEquals(clock.pending, 0);
});

const gateThen = (then: () => unknown): Module["mount"] => (coordinator) => {
  coordinator.hooks.register("tool:pre", () => null);
  return then() as null;
};

const throwing = () => {
  throw new Error("out of order");
};

const info = { id: "hooks-g", type: "hook" as const };

for (
  const [what, module, label] of [
    ["a tool that the plan requires", { id: "tool-x", mount: throwing, required: true }, 'tool "tool-x"'],
    [
      "a provider that the plan requires",
      { id: "provider-x", mount: () => null, required: true },
      'provider "provider-x"',
    ],
    [
      "a hook that declares gates",
      { id: "hooks-g", module: { ...info, gates: true }, mount: throwing },
      'hook "hooks-g"',
    ],
    ["a hook that declares gates and declines", {
      id: "hooks-g",
      module: { ...info, gates: true },
      mount: () => ({ skipped: "no" }),
    }, 'hook "hooks-g"'],
    [
      "a hook that registered its gate and then failed",
      { id: "hooks-g", mount: gateThen(throwing) },
      'hook "hooks-g"',
    ],
    ["a hook of another contract that declares gates", {
      id: "hooks-g",
      module: { ...info, gates: true, contract: 2 },
      mount: gateThen(() => null),
    }, 'hook "hooks-g"'],
  ] as [string, TestModule & { id: string; required?: boolean }, string][]
) {
  const place = label.split(" ")[0] as "tool" | "provider" | "hook";
  Deno.test(`initialize() fails without ${what}`, async () => {
    const parts = { [`${place}s`]: place === "provider" ? [["done"], module] : [module] };
    const error = await assertRejects(() => kit(parts).session.initialize()) as PreampError;
    assertEquals(error.code, "module_load_failed");
    assertMatch(error.message, new RegExp(`^Cannot initialize without ${label}: `));
    assertEquals(error.details.map(({ path, hint }) => [path, hint !== undefined]), [
      [place === "provider" ? "providers[1]" : `${place}s[0]`, true],
    ]);
  });

  Deno.test(`a session runs without ${what} when the plan sets required: false`, async () => {
    const optional = { ...module, required: false };
    const made = kit({ [`${place}s`]: place === "provider" ? [["done"], optional] : [optional] });
    assertEquals((await made.run()).status, "completed");
    assertEquals(made.data("module:skipped").map(({ module_id }) => module_id), [module.id]);
  });
}

Deno.test("initialize() reports every problem of a required module's config, with its path in the plan", async () => {
  const schema = { type: "object", properties: { size: { type: "integer" }, on: { type: "boolean" } } };
  const module = {
    id: "tool-x",
    required: true,
    config: { size: "big", onn: true },
    mount: (_: Coordinator, config: JsonObject) => readConfig(schema, config) as unknown as Promise<void>,
  };
  const error = await assertRejects(() => kit({ tools: [module] }).session.initialize()) as PreampError;
  assertEquals([error.code, error.details], ["module_load_failed", [
    {
      path: "tools[0].config.onn",
      message: 'Cannot use key "onn": config has no such key',
      hint: 'did you mean "on"?',
    },
    {
      path: "tools[0].config.size",
      message: "Cannot read config.size: must be a whole number: received text",
    },
  ]]);
});

Deno.test("a hook that only observes at a gate is skipped when it fails to mount", async () => {
  const made = kit({
    hooks: [(coordinator) => {
      coordinator.hooks.register("tool:pre", () => null, { fail_closed: false });
      throw new Error("out of order");
    }],
  });
  assertEquals((await made.run()).status, "completed");
});

for (const contract of [2, "1", 0, null]) {
  Deno.test(`a module of contract ${JSON.stringify(contract)} is not mounted`, async () => {
    let mounted = false;
    const made = kit({
      tools: [{
        id: "tool-new",
        module: { id: "tool-new", contract } as unknown as ModuleInfo,
        mount: () => {
          mounted = true;
        },
      }],
    });
    await made.run();
    assertEquals([mounted, made.data("module:skipped")[0]?.reason], [false, "contract_unsupported"]);
    assertMatch(String(made.data("module:skipped")[0]?.message), /must be 1, .*received ("1"|2|0|null)$/);
  });
}

Deno.test("a module of contract 1 is mounted", async () => {
  const module = { id: "tool-t", contract: 1 };
  const made = kit({
    tools: [{ module, mount: async (coordinator) => await coordinator.mount("tools", tool("t")) }],
  });
  await made.run();
  assertEquals(made.data("module:skipped"), []);
});

for (
  const [name, warned] of [
    ["plain_tool-1", false],
    ["x".repeat(64), false],
    ["x".repeat(65), true],
    ["with space", true],
    ["ünï", true],
    ["a.b", true],
    ["a/b", true],
  ] as const
) {
  Deno.test(`a tool name that models refuse is a warning: ${name.slice(0, 20)} ${warned}`, async () => {
    const made = kit({ tools: [tool(name)] });
    await made.run();
    assertEquals(made.warnings.map(({ code }) => code), warned ? ["tool_name_refused"] : []);
  });
}

Deno.test("initialize() fails when a module unmounts the context manager or the orchestrator once all are mounted", async () => {
  for (const [point, label] of [["context", "context manager"], ["orchestrator", "orchestrator"]] as const) {
    const { session, names } = kit({
      system: "Be brief.",
      options: { history: [{ role: "user", content: "before" }] },
      tools: [{
        mount: async (coordinator) => await coordinator.mount("tools", tool("t")),
        onSessionReady: (coordinator) => coordinator.unmount(point),
      }],
    });
    const error = await assertRejects(() => session.initialize());
    assertEquals(error.message, `Cannot run without ${label}: a module unmounted it`);
    assertEquals((error as unknown as { code: string }).code, "module_load_failed");
    assertEquals(names().includes("session:start"), false);
  }
});

Deno.test("a turn fails when a module unmounts the context manager or the orchestrator before it", async () => {
  for (const [point, label] of [["context", "context manager"], ["orchestrator", "orchestrator"]] as const) {
    const { run } = kit({
      hooks: [(coordinator) => {
        coordinator.hooks.register("session:start", async () => await coordinator.unmount(point) ?? null);
      }],
    });
    const error = await assertRejects(() => run());
    assertEquals(error.message, `Cannot run without ${label}: a module unmounted it`);
  }
});
