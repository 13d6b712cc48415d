/**
 * A server outlives every module: each member of every contract is taken away, throws, answers nonsense,
 * late, never or twice, in modules that run in processes, while another guest watches. Nothing
 * here catches what the host leaves behind: an unhandled error ends `deno test` itself.
 */
import { defaultPolicy } from "../../src/policy/settings.ts";
import { createPreamp, type Preamp, type PreampOptions } from "../../src/server/mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { temporaryFolder } from "../support/folder.ts";

/**
 * Members of a contract and their code as they should be; the first line of a module's `mount` that offers
 * them.
 */
interface Contract {
  readonly members: Readonly<Record<string, string>>;
  readonly mount: string;
}

const MESSAGES = `this.kept ??= []; return this.kept`;

const CONTRACTS: Readonly<Record<string, Contract>> = {
  tool: {
    members: {
      name: `"tool-under-test"`,
      description: `"Does what it should"`,
      input_schema: `{ type: "object", properties: { n: { pattern: "^a" } } }`,
      risk: `"low"`,
      execute: `() => "done"`,
    },
    mount: `await c.mount("tools", subject, "it")`,
  },
  provider: {
    members: {
      name: `"provider-under-test"`,
      priority: `1`,
      getInfo: `() => ({ id: "p", display_name: "P", capabilities: [], defaults: { context_window: 9000 } })`,
      getModelInfo: `() => ({ context_window: 9000 })`,
      listModels: `() => []`,
      parseToolCalls: `() => []`,
      complete:
        `(request, { onDelta } = {}) => { onDelta?.({ block_index: 0, block_type: "text", delta: "h" }); return { content: "hi" } }`,
    },
    mount: `await c.mount("providers", subject, "it")`,
  },
  hook: {
    members: {
      handler: `() => null`,
      events: `["tool:pre", "provider:request", "session:start"]`,
      name: `"hook-under-test"`,
      priority: `10`,
      close: `() => {}`,
    },
    mount: `return subject`,
  },
  context: {
    members: {
      addMessage: `function (message) { (this.kept ??= []).push(message) }`,
      getMessages: `function () { ${MESSAGES} }`,
      getMessagesForRequest: `function () { ${MESSAGES} }`,
      setMessages: `function (messages) { this.kept = messages }`,
      clear: `function () { this.kept = [] }`,
      setSystemPromptFactory: `function () {}`,
    },
    mount: `await c.mount("context", subject)`,
  },
  orchestrator: {
    members: {
      resumable: `true`,
      execute: `async (prompt, context, providers, tools, hooks) => {
        await hooks.emit("execution:start", { prompt });
        await context.addMessage({ role: "user", content: prompt });
        for (const tool of Object.values(tools)) await tool.execute({}, { id: "c1", progress() {} });
        const [provider] = Object.values(providers);
        const answer = await provider.complete({ messages: await context.getMessagesForRequest({ provider }) });
        await hooks.emit("orchestrator:complete", { status: "success", turn_count: 1 });
        return String(answer.content?.[0]?.text);
      }`,
    },
    mount: `await c.mount("orchestrator", subject)`,
  },
};

/** What a member can be instead; `whole` is its code as it should be. */
const FAULTS: Readonly<Record<string, (member: string, whole: string) => string>> = {
  "is missing": () => "",
  "throws": (member) => `${member}() { throw new RangeError("broken") },`,
  "throws when it is read": (member) => `get ${member}() { throw { toString() { throw null } } },`,
  "rejects, and leaves another rejection behind": (member) =>
    `async ${member}() { Promise.reject(new Error("left behind")); throw undefined },`,
  "answers nonsense": (member) => `${member}: () => [[{ __proto__: null, then: 1 }], 7, null, "x"],`,
  "is nonsense": (member) => `${member}: [null],`,
  "answers late": (member, whole) =>
    `async ${member}(...args) { await new Promise((done) => setTimeout(done, 30)); return await (${whole}).apply?.(this, args) },`,
  "never answers": (member) => `${member}: () => new Promise(() => {}),`,
  "answers twice, and continues after its answer": (member, whole) =>
    `${member}(...args) { return { then: (resolve, reject) => { const answer = (${whole}).apply?.(this, args);
       resolve(answer); resolve(2); reject(new Error("third"));
       args[1]?.onDelta?.({ block_index: 0, block_type: "text", delta: "late" });
       setTimeout(() => { args[1]?.onDelta?.(5); args[1]?.progress?.(5); throw new Error("afterwards") }) } } },`,
};

/** Code of a module of a contract with one member other than it should be. */
function broken({ members, mount }: Contract, at: string, fault: string): string {
  const parts = Object.entries(members).map(([member, whole]) =>
    member === at ? FAULTS[fault]!(member, whole) : `${member}: ${whole},`
  );
  return `export async function mount(c) { const subject = { ${parts.join("\n")} };\n${mount}\n}
    export async function onSessionReady(c) { await c.hooks.emit("custom:ready", {}) }`;
}

/** A module that is never mounted. */
const NEVER_MOUNTED = `export const mount = () => new Promise(() => {})`;

/** Modules that are broken before there is anything to mount. */
const BROKEN_MODULES: readonly string[] = [
  `export const mount = async (c) => { await c.hooks.emit("custom:one", {}); throw 5 }`,
  `export const mount = (c) => { c.hooks.emit("custom:one", {}); c.collectContributions("x"); throw new Error("left") }`,
  `export const mount = () => ({ get name() { throw 1 }, provides: [] })`,
  `export const mount = null`,
  `Promise.reject(new Error("top")); export const mount = () => { throw null }`,
  `export const mount = (c) => { c.registerCleanup(() => { throw 1 }); c.registerCleanup(() => Promise.reject(2));
     c.registerContributor("x", "y", () => Promise.reject(3)); c.registerCapability("z", () => { throw 4 });
     c.hooks.register("*", () => { throw 5 }); c.hooks.register("tool:pre", () => Promise.reject(undefined)); return () => Promise.reject(6) }
   export const onSessionReady = async (c) => { c.collectContributions("x"); await c.getCapability("z")?.() }`,
  `export const mount = (c) => { c.context?.addMessage(7); c.providers; c.hooks.register("prompt:submit", async () => {
     c.context.setSystemPromptFactory(() => { throw 1 }); c.context.addMessage(7); c.context.setMessages("no");
     c.providers.mock?.complete(5); c.providers.mock?.complete({ messages: [] }, { onDelta() { throw 1 } }) }) }`,
];

/** Observes every event and asks at every tool call, so that it receives the data of all other modules. */
const BYSTANDER = `export function mount(c) {
  c.hooks.register("tool:pre", async () => { await c.hooks.emit("custom:seen", {}); void c.providers; return null });
  c.registerContributor("x", "bystander", () => Promise.reject(new Error("nothing")));
}`;

/** Faults of members that are no functions; as a function they are nonsense, whatever the function does. */
const OF_DATA: ReadonlySet<string> = new Set([
  "is missing",
  "throws",
  "throws when it is read",
  "is nonsense",
]);

/** Faults that hold up their guest, which is given a second. */
const SLOW: readonly string[] = [
  "rejects, and leaves another rejection behind",
  "answers late",
  "never answers",
];
const QUICK = Object.keys(FAULTS).filter((fault) => !SLOW.includes(fault));

type Plan = Record<string, unknown>;

const LIST: Readonly<Record<string, string>> = { tool: "tools", provider: "providers", hook: "hooks" };

/** A plan with a module of a type in it, beside others that are as they should be. */
function planOf(type: string, code: string): Plan {
  const source = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;
  const subject = { module: `${type}-subject`, source: source(code) };
  const list = LIST[type];
  const calls = [{ name: "it", arguments: { n: "abc" } }, {
    name: "calculator",
    arguments: { expression: "1" },
  }];
  const plan = {
    session: {
      orchestrator: type === "orchestrator" ? subject : "loop-streaming",
      context: type === "context" ? subject : "context-simple",
    },
    system: "Be brief.",
    providers: [{ module: "provider-mock", config: { responses: [{ tool_calls: calls }, "done"] } }],
    tools: ["tool-calculator"],
    hooks: [{ module: "hook-bystander", source: source(BYSTANDER) }],
  };
  return list ? { ...plan, [list]: [...plan[list as "tools"], subject] } : plan;
}

/** Sends a plan, or the name of one. */
async function post(preamp: Preamp, plan: Plan | string): Promise<{ status: number; body: string }> {
  const asked = typeof plan === "string" ? { plan_ref: plan } : { plan };
  const response = await preamp.fetch(
    new Request("http://localhost/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: "go", ...asked }),
    }),
  );
  return { status: response.status, body: await response.text() };
}

/** How a run may end that has a broken module. */
const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "denied", "incomplete"]);

/** Runs at once: while one waits for a module that is late, others have the processor. */
const AT_ONCE = 6;

/** Posts every plan; resolves to those that were neither run nor refused for their module. */
async function postAll(preamp: Preamp, plans: Iterable<[what: string, plan: Plan | string]>) {
  const wrong: string[] = [];
  const left = [...plans];
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [what, plan] = next;
      const { status, body } = await post(preamp, plan);
      const said = JSON.parse(body) as { status: unknown; error: { code?: string } | null };
      const ran = status === 200 && ENDS.has(String(said.status));
      const refused = status === 422 && said.error?.code === "module_load_failed";
      if (!ran && !refused) wrong.push(`${what}: ${status} ${JSON.stringify(said.error)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return wrong;
}

/** Every contract with one member as it should not be. */
function* brokenPlans(faults: readonly string[]): Generator<[what: string, plan: Plan]> {
  for (const [type, contract] of Object.entries(CONTRACTS)) {
    for (const [member, whole] of Object.entries(contract.members)) {
      for (const fault of faults) {
        if (!whole.includes("=>") && !whole.startsWith("function") && !OF_DATA.has(fault)) continue;
        yield [`${type}: ${member} ${fault}`, planOf(type, broken(contract, member, fault))];
      }
    }
  }
}

/** Every code as a module of every type. */
function brokenModules(codes: readonly string[]): [what: string, plan: Plan][] {
  return codes.flatMap((code) =>
    Object.keys(CONTRACTS).map((type): [string, Plan] => [`${type}: ${code}`, planOf(type, code)])
  );
}

/** A server that waits so many seconds for what a module does, and the errors of its log. */
function open(wait_s: number, options: PreampOptions = {}) {
  const policy = defaultPolicy();
  policy.rates = { requests_per_minute: 0, runs_per_minute: 0 };
  policy.modules.allow = ["data:"];
  policy.isolation.load_timeout_s = 2 * wait_s;
  policy.limits.tool_timeout_s = policy.limits.hook_timeout_s = policy.limits.cleanup_timeout_s = wait_s;
  policy.limits.max_duration_s = 4 * wait_s;
  const errors: string[] = [];
  const preamp = createPreamp({
    authenticate: null,
    policy,
    runtime_log: (level, event, facts) => {
      if (level === "error" && event !== "module_console") errors.push(`${event} ${JSON.stringify(facts)}`);
    },
    ...options,
  });
  return { preamp, errors, [Symbol.asyncDispose]: preamp.close };
}

/** Nothing of it runs elsewhere. */
const WHOLE: Plan = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { responses: ["still there"] } }],
};

async function assertAlive(preamp: Preamp): Promise<void> {
  const { status, body } = await post(preamp, WHOLE);
  assertEquals([status, JSON.parse(body).output_text], [200, "still there"]);
}

Deno.test("no member of a module that is late, never answers or leaves a rejection behind ends its server", async () => {
  await using server = open(1);
  const { preamp, errors } = server;
  const plans = [...brokenPlans(SLOW), ...brokenModules([NEVER_MOUNTED])];
  assertEquals(await postAll(preamp, someOf(plans, 20)), []);
  assertEquals(errors, []);
  await assertAlive(preamp);
});

Deno.test("no member of a module that is missing, throws, lies or answers twice ends its server", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await using server = open(60, { plans: new URL(`file://${folder}/`) });
  const { preamp, errors } = server;
  const plans = [...brokenPlans(QUICK), ...brokenModules(BROKEN_MODULES)];
  assert(plans.length > 150);
  const names: [what: string, name: string][] = [];
  for (const [what, plan] of someOf(plans, 8)) {
    const name = `plan-${names.length}`;
    await Deno.writeTextFile(`${folder}/${name}.json`, JSON.stringify(plan));
    names.push([what, name]);
  }
  assertEquals(await postAll(preamp, names), []);
  assertEquals(errors, []);
  const { body } = await post(preamp, "plan-0");
  assertEquals(JSON.parse(body).isolation["hook-bystander"], "process");
  await assertAlive(preamp);
});
