/** What models were sent: the requests that a replay computes are those that the providers received. */
import { setImmediate } from "node:timers";
import * as contextSimple from "../../modules/context-simple/mod.ts";
import * as contextSummarizing from "../../modules/context-summarizing/mod.ts";
import * as providerMock from "../../modules/provider-mock/mod.ts";
import { isCallOfLoop } from "../../src/kernel/guard_provider.ts";
import type { ModelRequest, Page } from "../../src/runs/types.ts";
import { jsonEqual, toPlain } from "../../src/sdk/json.ts";
import { mountLoop } from "../../src/sdk/loop/mount_loop.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { toolTokens } from "../../src/sdk/token_estimate.ts";
import type {
  ChatRequest,
  ContextManager,
  Coordinator,
  JsonObject,
  Module,
  Provider,
} from "../../src/sdk/types.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { CALLER, replayed, type Service, service, STRANGER, type TestPlan } from "../support/runs.ts";
import { type TestModule, tool } from "../support/sessions.ts";
import { agentsKit, planOf, script, sum, tasks } from "../support/sub_agents.ts";
import { builtin, mock, play } from "./play.ts";
import { SCENARIOS } from "./scenarios.ts";

type Sent = Pick<ModelRequest, "messages" | "tools" | "options">;

/** Returns the providers, which note the requests of the loop. */
function noting(providers: TestPlan["providers"], sent: Sent[]): NonNullable<TestPlan["providers"]> {
  return (providers ?? [mock("done")]).map((provider) => {
    if (Array.isArray(provider)) return noted(new MockProvider({ name: "mock", responses: provider }), sent);
    if (typeof provider !== "function" && "complete" in provider) return noted(provider as Provider, sent);
    const { mount, ...module } = typeof provider === "function" ? { mount: provider } : provider as Module;
    const own = (coordinator: Coordinator): Coordinator =>
      new Proxy(coordinator, {
        get(target, name) {
          const value = Reflect.get(target, name, target);
          if (typeof value !== "function") return value;
          return name === "mount"
            ? (point: "providers", one: Provider, options?: JsonObject) =>
              target.mount(point, noted(one, sent), options)
            : value.bind(target);
        },
      });
    return { ...module, mount: (coordinator, config) => mount(own(coordinator), config) } as TestModule;
  });
}

function noted(provider: Provider, sent: Sent[]): Provider {
  const complete = provider.complete.bind(provider);
  provider.complete = (request, options) => {
    if (isCallOfLoop(options?.call)) note(request, sent);
    return complete(request, options);
  };
  return provider;
}

function note({ messages, tools = [], ...options }: ChatRequest, sent: Sent[]): void {
  sent.push(toPlain({ messages, tools, options }) as unknown as Sent);
}

/** Returns the requests without those that are equal to the one before: a retry is the same call. */
function distinct(requests: readonly Sent[]): Sent[] {
  return requests.map(({ messages, tools, options }) =>
    toPlain({ messages, tools, options }) as unknown as Sent
  )
    .filter((request, index, all) => !jsonEqual(request, all[index - 1]));
}

function mountOf([module]: readonly unknown[]): Module["mount"] {
  return (module as Module).mount;
}

const mountsLoop: Module["mount"] = (coordinator, config) =>
  mountLoop(coordinator, config, { orchestrator: "its-own", steering: false, max_parallel_tools: 1 });

/** Computes the requests and advances time, as a replay does. */
async function requestsOf({ runs, clock }: Pick<Service, "runs" | "clock">, run_id: string) {
  let done = false;
  const page = runs.requests(CALLER, run_id).finally(() => done = true);
  page.catch(() => {}); // reported to the caller
  for (let steps = 0; !done && steps < 5_000; steps++) await clock.advance(5);
  return (await page).data;
}

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  Deno.test(`requests() are what the providers received: ${name}`, async () => {
    const sent: Sent[] = [];
    const { plan } = scenario;
    const { service, run, entries } = await play({
      ...scenario,
      plan: { system: "Be brief.", ...plan, providers: noting(plan.providers, sent) },
    });
    const requests = await requestsOf(service, run.id);
    const [secret = "none"] = plan.secrets ?? [];
    const expected = distinct(JSON.parse(JSON.stringify(sent).replaceAll(secret, "[REDACTED]")));
    const of_run = scenario.before ? expected.slice(1) : expected; // the earlier run has one call
    assertEquals(distinct(requests), of_run);
    const seqs = entries.flatMap(({ event, seq, verdict }) =>
      event === "provider:request" && verdict?.action !== "deny" ? [seq] : []
    );
    assertEquals([...new Set(requests.map(({ seq }) => seq))], seqs);
  });
}

Deno.test("requests() have the summaries that a model wrote for the context", async () => {
  const sent: Sent[] = [];
  const long = { tool_calls: [{ name: "long", arguments: {} }] };
  const providers = noting([
    builtin(providerMock, {
      context_window: 4_000,
      max_output_tokens: 500,
      responses: [...Array.from({ length: 8 }, () => long), "done"],
    }),
    {
      ...builtin(providerMock, { responses: Array.from({ length: 9 }, (_, index) => `summary ${index}`) }),
      instance_id: "writer",
    } as TestModule,
  ], sent);
  const { service, run } = await play({
    plan: {
      context: builtin(contextSummarizing, { summary_provider: "writer" }),
      providers,
      tools: [tool("long", () => Promise.resolve("word ".repeat(900)))],
    },
  });
  assertMatch(JSON.stringify(sent), /summary 1/);
  assertEquals(distinct(await requestsOf(service, run.id)), distinct(sent));
  assertEquals(await replayed(service, run.id), { equal: true });
});

Deno.test("requests() have those of a run that waits, with tokens and the usage of each answer", async () => {
  const { plan } = SCENARIOS["a tool call with approval"]!;
  const sent: Sent[] = [];
  const paused = service({ plans: { plan: { ...plan, providers: noting(plan.providers, sent) } } });
  const handle = await paused.post("plan");
  const { status } = await handle.settled("attention");
  const [request, ...others] = await requestsOf(paused, handle.id);
  assertEquals([status, others], ["awaiting_approval", []]);
  const { seq } = (await paused.entries(handle.id)).find(({ event }) => event === "provider:request")!;
  const { tokens, usage, ...facts } = request!;
  assertEquals(facts, { seq, session_id: handle.session_id, provider: "mock", iteration: 1, ...sent[0]! });
  const tools = toolTokens([...facts.tools]);
  assertEquals(tokens, { messages: [7, 6], tools, total: 13 + tools });
  assertEquals([usage?.input_tokens, usage?.output_tokens], [40, 12]);
});

Deno.test("requests() have the system text that the run had, and are pages", async () => {
  const plan: TestPlan = { ...SCENARIOS["a tool call with approval"]!.plan, system: "Be brief.", hooks: [] };
  const { service, run } = await play({ plan });
  plan.system = "Be long."; // as the file of a system text that changed
  const requests = await requestsOf(service, run.id);
  assertEquals(requests.map(({ messages: [system] }) => system!.content), ["Be brief.", "Be brief."]);
  const page = (options: { seq?: number; cursor?: number; limit?: number }) =>
    service.runs.requests(CALLER, run.id, options);
  assertEquals(await page({ limit: 1 }), { data: requests.slice(0, 1), next_cursor: "1" });
  assertEquals(await page({ cursor: 1, limit: 1 }), { data: requests.slice(1), next_cursor: null });
  assertEquals(await page({ seq: requests[1]!.seq }), { data: requests.slice(1), next_cursor: null });
  assertEquals(await page({ seq: 1 }), { data: [], next_cursor: null });
});

/** Returns a context that counts the views that it makes. */
function countingContext(counts: { views: number }): NonNullable<TestPlan["context"]> {
  const mount: Module["mount"] = (coordinator, config) =>
    contextSimple.mount(
      new Proxy(coordinator, {
        get(target, name) {
          const value = Reflect.get(target, name, target);
          if (name !== "mount") return typeof value === "function" ? value.bind(target) : value;
          return (point: "context", manager: ContextManager) => {
            const view = manager.getMessagesForRequest.bind(manager);
            manager.getMessagesForRequest = (options) => {
              counts.views++;
              return view(options);
            };
            return target.mount(point, manager);
          };
        },
      }),
      config,
    );
  return builtin({ ...contextSimple, mount }, {});
}

Deno.test("requests() of a page replay the run up to the end of the page", async () => {
  const counts = { views: 0 };
  const responses = Array.from({ length: 30 }, () => ({ tool_calls: [{ name: "a", arguments: {} }] }));
  const { service, run } = await play({
    plan: { context: countingContext(counts), providers: [mock(...responses, "done")], tools: [tool("a")] },
  });
  const all = await requestsOf(service, run.id);
  assertEquals(all.length, 31);
  const page = async (options: { seq?: number; cursor?: number; limit?: number }) => {
    counts.views = 0;
    return await service.runs.requests(CALLER, run.id, options);
  };
  assertEquals(await page({ limit: 1 }), { data: all.slice(0, 1), next_cursor: "1" });
  assertEquals(counts.views, 2); // the call of the page, and the beginning of the next
  assertEquals(await page({ cursor: 8, limit: 3 }), { data: all.slice(8, 11), next_cursor: "11" });
  assertEquals(counts.views, 12);
  assertEquals(await page({ seq: all[4]!.seq }), { data: all.slice(4, 5), next_cursor: null });
  assertEquals(counts.views, 6);
  assertEquals(await page({ cursor: 31 }), { data: [], next_cursor: null });
  assertEquals(counts.views, 0);
});

Deno.test("requests() of many calls let the process do other work between them", async () => {
  const responses = Array.from({ length: 30 }, () => ({ tool_calls: [{ name: "a", arguments: {} }] }));
  const { service, run } = await play({
    plan: { providers: [mock(...responses, "done")], tools: [tool("a")] },
  });
  let [done, turns] = [false, 0];
  const page = service.runs.requests(CALLER, run.id).finally(() => done = true);
  for (; !done; turns++) await new Promise((resolve) => void setImmediate(resolve));
  assertEquals((await page).data.length, 31);
  assert(turns > 30, `${turns} turns of the event loop`);
});

Deno.test("requests() have those of sub-agents, running ones too, in the order of the calls", async () => {
  const sent: Sent[] = [];
  const kit = agentsKit({ modules: { "provider-mock": mountOf(noting([providerMock], sent)) } });
  const helper = { system: "You help.", providers: [script(sum("6*7"), "It is 42.")] };
  const plan = planOf([tasks({ agent: "helper", instruction: "What is 6 × 7?" }), "done"], { helper }, {
    hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
  });
  const run = await kit.start(plan);
  const { data: { approval_id } } = await kit.until(run.id, ({ event }) => event === "approval:required");
  assertEquals(distinct(await requestsOf(kit, run.id)), distinct(sent));
  assertEquals(sent.length, 2); // its own, and that of the sub-agent that waits
  await kit.runs.decide(CALLER, run.id, String(approval_id), { decision: "allow" });
  await run.settled("end");
  const [entries, requests] = [await kit.entries(run.id), await requestsOf(kit, run.id)];
  assertEquals([distinct(requests), requests.length], [distinct(sent), 4]);
  const asked = entries.filter(({ event }) => event === "provider:request");
  assertEquals(
    requests.map(({ seq, session_id }) => [seq, session_id]),
    asked.map(({ seq, session_id }) => [seq, session_id]),
  );
  assertEquals(new Set(asked.map(({ session_id }) => session_id)).size, 2);
  for (const limit of [1, 2, 3]) {
    const pages: ModelRequest[] = [];
    let cursor: string | null = "0";
    while (cursor !== null) {
      const page: Page<ModelRequest> = await kit.runs.requests(CALLER, run.id, {
        cursor: Number(cursor),
        limit,
      });
      pages.push(...page.data);
      cursor = page.next_cursor;
    }
    assertEquals(pages, requests);
  }
});

Deno.test("requests() are refused for runs whose context or loop a hook mounted, and for others' runs", async () => {
  for (const mount of [contextSimple.mount, mountsLoop]) {
    const { service, run } = await play({ plan: { hooks: [mount] } });
    const error = await service.runs.requests(CALLER, run.id).then(() => null, (error) => error);
    assertEquals(error.code, "not_replayable");
  }
  const { service: { runs }, run } = await play({ plan: {} });
  for (const [caller, id] of [[STRANGER, run.id], [CALLER, "run_none"]] as const) {
    await assertRejects(() => runs.requests(caller, id), Error, "Cannot find run");
  }
});
