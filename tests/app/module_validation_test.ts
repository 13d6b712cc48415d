/** Tests of validating a module: structure and behaviour. */
import { BUILTIN_IDS, createModuleTable } from "../../src/app/module_table.ts";
import { checklistOf, countFindings } from "../../src/app/validation/checklist.ts";
import { casesOf, REQUIRED_CASES } from "../../src/app/validation/suites.ts";
import { validateModule } from "../../src/app/validation/validator_child.ts";
import type { ValidateOptions } from "../../src/app/validation/contract_check.ts";
import type { Coordinator, JsonObject, Module, ModuleType, Tool } from "../../src/sdk/types.ts";
import { MockContextManager, MockProvider, MockTool } from "preamp/testing";
import * as calculator_tool from "../fixtures/amplifier/calculator_tool.ts";
import * as simple_context from "../fixtures/amplifier/simple_context.ts";
import * as simple_orchestrator from "../fixtures/amplifier/simple_orchestrator.ts";
import * as mock_provider from "../fixtures/amplifier/mock_provider.ts";
import * as timing_hook from "../fixtures/amplifier/timing_hook.ts";
import * as quick_start_tool from "../fixtures/amplifier/quick_start_tool.ts";
import * as placeholder_tool from "../fixtures/amplifier/placeholder_tool.ts";
import * as complete_tool from "../fixtures/amplifier/complete_tool.ts";
import * as schema_method_tool from "../fixtures/amplifier/schema_method_tool.ts";
import { configOn, fakeVendor, VENDORS } from "../modules/providers/fake_vendor.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";

type Mount = (coordinator: Coordinator, config: JsonObject) => unknown;

const of = (mount: Mount, rest: object = {}) => ({
  mount: async (c: Coordinator, o: JsonObject) => await mount(c, o),
  ...rest,
});
const validate = (module: object, options: Partial<ValidateOptions> = {}) =>
  validateModule(module, {
    id: "tool-test",
    config: {},
    structure_only: true,
    allow: [],
    call_ms: 5_000,
    onStep: () => {},
    placeOf: () => undefined,
    ...options,
  });

/** Resolves to the findings of a module as `severity name: message`. */
async function findings(module: object, options: Partial<ValidateOptions> = {}): Promise<string[]> {
  const { checks, suite } = await validate(module, options);
  return [...checks, ...suite].filter((check) => !check.passed && check.name !== "module_info")
    .map(({ name, severity, message }) => `${severity} ${name}: ${message}`);
}

const mounting = (tool: object, name = "t") => of((coordinator) => coordinator.mount("tools", tool, name));
const provides = { provides: ["t"], name: "tool-test" };
const tool = (fields: object = {}) => Object.assign(new MockTool("t"), fields);
const complete = (fields: object = {}) =>
  of(async (coordinator) => {
    await coordinator.mount("tools", tool(fields));
    return provides;
  });

Deno.test("validateModule() reports a tool module that mounts no tool, in Amplifier's words", async () => {
  assertEquals(await findings(of(() => null)), [
    "error protocol_compliance: No tool was mounted and mount() did not return a Tool instance",
  ]);
});

Deno.test("validateModule() only warns of a provider that is not configured", async () => {
  const [finding, ...more] = await findings(mock_provider, { id: "provider-mock" });
  assertMatch(finding ?? "", /^warning protocol_compliance: Provider "provider-mock" is not configured/);
  assertEquals(more, []);
  const { checks } = await validate(mock_provider, { id: "provider-mock" });
  assertEquals(countFindings(checks, false).errors, 0);
  assert(countFindings(checks, true).errors > 0);
});

Deno.test("validateModule() warns of a module that declines to mount, of any type", async () => {
  const skipped = of(() => ({ skipped: "no display here" }));
  assertEquals(await findings(skipped), ["warning protocol_compliance: no display here"]);
  assertEquals(
    (await findings(skipped, { type: "context" }))[0],
    "error protocol_compliance: no display here",
  );
  const needy = of(() => null, { module: { config_schema: { required: ["url"] } } });
  assertMatch((await findings(needy))[0] ?? "", /^warning protocol_compliance: .*its config lacks url/);
});

Deno.test("validateModule() passes a placeholder", async () => {
  assertEquals(await findings(placeholder_tool, { structure_only: false }), []);
});

Deno.test("validateModule() requires an async mount, with any number of parameters", async () => {
  const sync = {
    mount: (coordinator: Coordinator, _config: JsonObject) => (coordinator.mount("tools", tool()), provides),
  };
  const short = {
    mount: async (coordinator: Coordinator) => {
      await coordinator.mount("tools", tool());
      return provides;
    },
  };
  assertMatch((await findings(sync)).join(), /^error mount_signature: mount must be async/);
  assertEquals(await findings(short), []);
});

Deno.test("validateModule() checks a tool's shape: two errors, two warnings", async () => {
  const shapes: [object, string][] = [
    [{ execute: undefined }, "error tool_execute"],
    [{ name: "" }, "error tool_name"],
    [{ description: "" }, "warning tool_description"],
    [{ input_schema: "text" }, "warning tool_input_schema"],
  ];
  for (const [fields, expected] of shapes) {
    const found = await findings(of(async (coordinator) => {
      await coordinator.mount("tools", tool(fields), "t");
      return provides;
    }));
    assertEquals(found.map((one) => one.split(":")[0]), [expected]);
  }
});

Deno.test("validateModule() accepts a tool without a schema, and one with get_schema()", async () => {
  const plain: Tool = { name: "t", description: "d", execute: () => Promise.resolve("out") };
  const spoken = { ...plain, get_schema: () => ({ type: "object", properties: {} }) };
  for (const one of [plain, spoken]) {
    const module = of(async (coordinator) => {
      await coordinator.mount("tools", one);
      return provides;
    });
    assertEquals(await findings(module, { structure_only: false }), []);
  }
});

Deno.test("validateModule() warns when mount returns a function and mounts nothing", async () => {
  const found = await findings(of(() => () => {}));
  assertEquals(found.length, 1);
  assertMatch(found[0]!, /^warning protocol_compliance: .*may be conditional/);
});

Deno.test("validateModule() reads a provider's plain get_info", async () => {
  const provider = (info: unknown) =>
    of(async (coordinator) => {
      const methods = {
        get_info: () => info,
        list_models: () => [],
        complete: () => ({}),
        parse_tool_calls: () => [],
      };
      await coordinator.mount("providers", { name: "p", ...methods });
    });
  const options = { id: "provider-p" };
  assertEquals(await findings(provider({ id: "p", display_name: "P" }), options), []);
  assertMatch((await findings(provider("p"), options)).join(), /^error provider_get_info.*received text/);
  assertMatch(
    (await findings(provider({ id: "p" }), options)).join(),
    /received an object without display_name/,
  );
});

Deno.test("validateModule() accepts an orchestrator whose execute declares fewer parameters", async () => {
  const loop = (execute: unknown) => of((coordinator) => coordinator.mount("orchestrator", { execute }));
  const options = { id: "loop-x" };
  for (const execute of [() => Promise.resolve(""), (_prompt: unknown) => Promise.resolve("")]) {
    assertEquals(await findings(loop(execute), options), []);
  }
});

Deno.test("validateModule() reports a context without set_messages", async () => {
  const { addMessage, getMessages, getMessagesForRequest, clear } = MockContextManager.prototype;
  const memory = { addMessage, getMessages, getMessagesForRequest, clear };
  const found = await findings(of((coordinator) => coordinator.mount("context", memory)), {
    id: "context-x",
  });
  assertMatch(found.join(), /^error context_set_messages/);
});

Deno.test("validateModule() reports a hook that registers nothing", async () => {
  assertEquals(await findings(of(() => null), { id: "hooks-x" }), [
    "error protocol_compliance: No hook was registered and mount() did not return a Hook instance",
  ]);
});

Deno.test("validateModule() takes the type from the caller, the exports, the id or the mounted instance", async () => {
  const hook = (coordinator: Coordinator) => void coordinator.hooks.register("tool:pre", () => null);
  const types: [object, Partial<ValidateOptions>, ModuleType][] = [
    [of(hook), { id: "hooks-tool-dedupe" }, "hook"],
    [of(hook, { moduleType: "hook" }), { id: "tool-x" }, "hook"],
    [of(hook, { module: { id: "hooks-x" } }), { id: "tool-x" }, "hook"],
    [of(hook), { id: "thing" }, "hook"],
    [of(() => new MockProvider()), { id: "thing" }, "provider"],
    [complete(), { id: "thing" }, "tool"],
    [of(() => null), { id: "my-provider" }, "provider"],
    [of(() => null), { id: "thing" }, "tool"],
    [of(hook), { id: "hooks-x", type: "tool" }, "tool"],
  ];
  for (const [module, options, type] of types) assertEquals((await validate(module, options)).type, type);
});

Deno.test("validateModule() reports a missing mount and stops", async () => {
  const { checks, suite } = await validate({ start() {} });
  assertEquals(checks.map(({ name, passed }) => [name, passed]), [["mount_exists", false]]);
  assertEquals(suite, []);
});

Deno.test("validateModule() calls mount and its cleanups once when only the structure is checked", async () => {
  const calls: string[] = [];
  const module = of(async (coordinator) => {
    calls.push("mount");
    await coordinator.mount("tools", tool());
    coordinator.registerCleanup(() => calls.push("registered"));
    return () => calls.push("returned");
  }, { onSessionReady: async (_coordinator: Coordinator) => await void calls.push("ready") });
  assertEquals(await findings(module), []);
  assertEquals(calls, ["mount", "ready", "returned", "registered"]);
});

Deno.test("validateModule() reports errors of mount, timeouts, and what a session would refuse", async () => {
  const cases: [Mount, RegExp][] = [
    [() => {
      throw new Error("no disk");
    }, /^error protocol_compliance: mount\(\) failed: Error: no disk$/],
    [() => new Promise(() => {}), /^error protocol_compliance: mount\(\) failed: .*not done within 0.05 s$/],
    [(coordinator) => coordinator.mount("nonsense", tool()), /Unknown mount point "nonsense"/],
    [(coordinator) => coordinator.mount("hooks", { events: "all", handler() {} }), /Cannot mount at "hooks"/],
  ];
  for (const [mount, text] of cases) assertMatch((await findings(of(mount), { call_ms: 50 })).join(), text);
});

Deno.test("validateModule() warns of a return value of mount that is missing, invalid, or names unmounted tools", async () => {
  const returning = (value: unknown) =>
    of(async (coordinator) => {
      await coordinator.mount("tools", tool());
      return value;
    });
  const names = async (value: unknown) => (await findings(returning(value))).map((one) => one.split(":")[0]);
  assertEquals(await names(null), ["warning mount_return"]);
  assertEquals(await names(7), ["warning mount_return"]);
  assertEquals(await names({ name: "x", provides: ["other"] }), ["warning mount_return"]);
  for (const good of [provides, () => {}, tool()]) assertEquals(await names(good), []);
});

Deno.test("validateModule() warns of a mount name that is not the tool's", async () => {
  assertMatch(
    (await findings(mounting(tool(), "other"))).join(),
    /warning tool_name: mounted as "other", but its name is "t"/,
  );
});

Deno.test("validateModule() runs the suite: required cases are errors, others warnings", async () => {
  const crash = await findings(complete({ execute: (input: { path: string }) => input.path.length }), {
    structure_only: false,
  });
  assert(
    crash.some((one) =>
      one.startsWith("error execute() answers an input that fits its schema: execute crashed")
    ),
  );
  const careless = complete({ execute: (input: JsonObject) => (input.seen = true, "out") });
  assertEquals(await findings(careless, { structure_only: false }), [
    "warning execute() does not change its input: execute changed the input it was given",
  ]);
});

Deno.test("validateModule() reports no error for what the sandbox lacks", async () => {
  class NotCapable extends Error {
    override name = "NotCapable";
  }
  const refused = new MockProvider();
  refused.complete = () =>
    Promise.reject(new Error("failed", { cause: new NotCapable("Requires net access") }));
  const { suite } = await validate(of((coordinator) => coordinator.mount("providers", refused)), {
    id: "provider-x",
    structure_only: false,
  });
  assert(suite.length > 8);
  assertEquals(suite.filter(({ passed }) => !passed), []);
  assert(suite.some(({ message }) => message.startsWith("not tried: ")));
});

Deno.test("every case that counts as an error is a case of its suite", () => {
  const options = { config: {}, allow: [], call_ms: 1000 };
  for (const [type, required] of Object.entries(REQUIRED_CASES)) {
    const titles = casesOf(type as ModuleType, { mount: () => null } as Module, options).map(([title]) =>
      title
    );
    assertEquals(required.filter((title) => !titles.includes(title)), [], type);
  }
});

Deno.test("Amplifier's example modules have no error", async () => {
  const modules: [object, string, JsonObject?][] = [
    [calculator_tool, "tool-calculator"],
    [mock_provider, "provider-mock", { api_key: "k" }],
    [timing_hook, "hooks-timing"],
    [simple_orchestrator, "loop-simple"],
    [simple_context, "context-simple"],
    [quick_start_tool, "tool-myname"],
    [complete_tool, "tool-my-tool"],
    [placeholder_tool, "tool-placeholder"],
    [schema_method_tool, "tool-my-tool"],
  ];
  for (const [module, id, config = {}] of modules) {
    const found = await findings(module, { id, config, structure_only: false });
    assertEquals(found.filter((one) => one.startsWith("error")), [], id);
  }
});

Deno.test("checklistOf() has eight items for a tool", async () => {
  const { checks } = await validate(complete());
  const items = checklistOf("tool", checks);
  assertEquals(items.length, 8);
  assertEquals(items.map(({ state }) => state), ["ok", "ok", "ok", "ok", "ok", "ok", "warning", "unknown"]);
  assertEquals(checklistOf("tool", []).every(({ state }) => state === "unknown"), true);
});

/** Configs of the modules that need one. */
const CONFIGS: Record<string, JsonObject> = {
  "provider-replay": {
    events: [
      { seq: 1, event: "provider:request", session_id: "s", data: { provider: "mock", iteration: 1 } },
      {
        seq: 2,
        event: "provider:response",
        session_id: "s",
        data: { provider: "mock", response: { content: [{ type: "text", text: "Hello." }] } },
      },
    ],
  },
  "tool-mcp": {
    servers: {
      own: {
        command: [
          Deno.execPath(),
          "run",
          "--no-lock",
          "-A",
          new URL("../fixtures/mcp_server.js", import.meta.url).pathname,
        ],
      },
    },
  },
  "tool-skills": { skills: [new URL("../fixtures/skills", import.meta.url).pathname] },
};

/** Kinds of permissions of the modules that do not mount without. */
const ALLOW: Record<string, ValidateOptions["allow"]> = {
  "tool-bash": ["read", "run"],
  "tool-filesystem": ["read"],
  "tool-mcp": ["run"],
  "tool-search": ["read"],
  "tool-skills": ["read"],
  "tool-web": ["net"],
};

Deno.test("the built-in modules have no error", async () => {
  for (const id of BUILTIN_IDS) {
    const vendor = VENDORS[id];
    await using server = vendor && fakeVendor(vendor, [{ text: ["Hello."] }]);
    const config = server ? configOn(server.url, vendor!) : CONFIGS[id] ?? {};
    const module = await createModuleTable().module(id);
    const found = await findings(module, { id, config, allow: ALLOW[id] ?? [], structure_only: false });
    assertEquals(found, [], id);
  }
});
