/** Tests of modules that the embedding application provides. */
import { defineTool, type JsonObject, type Module, z } from "preamp";
import { createPreamp, policyFromData, type PreampOptions } from "preamp/server";
import { assertEquals, assertStringIncludes } from "../assert.ts";

const SESSION = { orchestrator: "loop-basic", context: "context-simple" };
const PROVIDER = {
  module: "provider-mock",
  config: { responses: [{ tool_calls: [{ name: "greet", arguments: { name: "Ada" } }] }, { text: "Done." }] },
};

function greeter(greeting: string) {
  return defineTool({
    name: "greet",
    description: "Greets someone.",
    input: z.object({ name: z.string() }),
    execute: ({ name }) => `${greeting}, ${name}!`,
  });
}

const GREET: Module = {
  module: {
    id: "tool-greet",
    version: "2.0.0",
    description: "Greets.",
    config_schema: {
      type: "object",
      properties: { greeting: { type: "string", default: "Hello" } },
      additionalProperties: false,
    },
  },
  async mount(coordinator, { greeting }) {
    await coordinator.mount("tools", greeter(String(greeting)));
  },
};

async function withPreamp(
  options: PreampOptions,
  test: (send: (route: string, body?: JsonObject) => Promise<Response>) => Promise<void>,
): Promise<void> {
  await using preamp = createPreamp({ authenticate: null, ...options });
  await test((route, body) => {
    const [method = "", path = ""] = route.split(" ");
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { "content-type": "application/json" };
    return preamp.fetch(new Request(`http://localhost${path}`, { method, headers, ...init }));
  });
}

Deno.test("createPreamp({ modules }) lets a plan name a module of the application by its id", async () => {
  const ready: string[] = [];
  const modules: PreampOptions["modules"] = {
    "tool-greet": { ...GREET, onSessionReady: () => void ready.push("ready") },
    "hooks-count": (coordinator) =>
      void coordinator.hooks.register("tool:post", () => void ready.push("post")),
  };
  await withPreamp({ modules }, async (send) => {
    const tools = [{ module: "tool-greet", config: { greeting: "Good day" } }];
    const plan = { session: SESSION, providers: [PROVIDER], tools, hooks: ["hooks-count"] };
    const run = await (await send("POST /v1/runs", { prompt: "?", plan })).json();
    assertEquals([run.status, run.output_text, run.isolation["tool-greet"]], [
      "completed",
      "Done.",
      "inline",
    ]);
    assertEquals(ready, ["ready", "post"]);
    const { data } = await (await send(`GET /v1/runs/${run.id}/events`)).json();
    const result = data.find(({ event }: { event: string }) => event === "tool:post");
    assertStringIncludes(JSON.stringify(result.data), "Good day, Ada!");
    assertEquals(await (await send(`POST /v1/runs/${run.id}/replay`)).json(), { equal: true });
  });
});

Deno.test("the config of an application's module has the defaults of its schema", async () => {
  await withPreamp({ modules: { "tool-greet": GREET } }, async (send) => {
    const plan = { session: SESSION, providers: [PROVIDER], tools: ["tool-greet"] };
    const { id } = await (await send("POST /v1/runs", { prompt: "?", plan })).json();
    const log = await (await send(`GET /v1/runs/${id}/events`)).text();
    assertStringIncludes(log, "Hello, Ada!");
  });
});

Deno.test("GET /v1/modules lists the application's modules, and explain describes them", async () => {
  await withPreamp({ modules: { "tool-greet": GREET } }, async (send) => {
    const { data } = await (await send("GET /v1/modules")).json();
    const listed = data.filter(({ id }: { id: string }) => id === "tool-greet");
    assertEquals(listed, [await (await send("GET /v1/modules/tool-greet")).json()]);
    assertEquals([listed[0].type, listed[0].version, listed[0].description], ["tool", "2.0.0", "Greets."]);
    const plan = { session: SESSION, providers: ["provider-mock"], tools: ["tool-greet"] };
    const explained = await (await send("POST /v1/plans/explain", { plan })).json();
    const [module] = explained.modules.filter(({ module }: { module: string }) => module === "tool-greet");
    assertEquals([module.type, module.isolation, module.url], ["tool", "inline", null]);
  });
});

Deno.test("the config of an application's module is validated before the run starts", async () => {
  await withPreamp({ modules: { "tool-greet": GREET } }, async (send) => {
    const tools = [{ module: "tool-greet", config: { greeting: 7 } }];
    const plan = { session: SESSION, providers: ["provider-mock"], tools };
    const check = await (await send("POST /v1/plans/check", { plan })).json();
    assertEquals([check.ok, check.errors[0].path], [false, "tools[0].config.greeting"]);
    assertEquals((await send("POST /v1/runs", { prompt: "?", plan })).status, 400);
  });
});

Deno.test("a module of one server is unknown to another server", async () => {
  const plan = { session: SESSION, providers: ["provider-mock"], tools: ["tool-greet"] };
  await withPreamp({ modules: { "tool-greet": GREET } }, async (send) => {
    assertEquals((await (await send("POST /v1/plans/check", { plan })).json()).ok, true);
  });
  await withPreamp({}, async (send) => {
    const { ok, errors } = await (await send("POST /v1/plans/check", { plan })).json();
    assertEquals([ok, errors[0].path], [false, "tools[0]"]);
  });
});

Deno.test("a module of the application whose mount() never ends is skipped after isolation.load_timeout_s", async () => {
  const policy = policyFromData({ isolation: { load_timeout_s: 0.05 } });
  const modules: PreampOptions["modules"] = { "tool-stuck": () => new Promise<void>(() => {}) };
  await withPreamp({ policy, modules, runtime_log: null }, async (send) => {
    const plan = { session: SESSION, providers: [PROVIDER], tools: ["tool-stuck"] };
    const run = await (await send("POST /v1/runs", { prompt: "?", plan })).json();
    assertEquals([run.status, run.warnings[0]?.code], ["completed", "module_mount_failed"]);
    assertStringIncludes(run.warnings[0].message, "mount() did not finish within 0.05 s");
  });
});
