/** What the page does, over a real server: runs, reloads, keys, what-if, lists. */
import { defineTool, z } from "preamp";
import { createPreamp } from "preamp/server";
import { AppState, type Host } from "../../../src/server/page/app/state/app_state.ts";
import { History, nameOf, titleOf } from "../../../src/server/page/app/state/history.ts";
import type { RunView } from "../../../src/server/page/app/state/run_view.ts";
import { assert, assertEquals } from "../../assert.ts";
import type { ReadonlySignal } from "@preact/signals";

type Fetch = (request: Request) => Response | Promise<Response>;

/** A page with a storage of its own; `places` are those that its address had. */
function pageOf(fetch: Fetch, kept: Record<string, string> = {}) {
  const storage = new Map(Object.entries(kept));
  const places: string[] = [];
  const host: Host = {
    url: "http://localhost/",
    storage: {
      getItem: (name) => storage.get(name) ?? null,
      setItem: (name, value) => void storage.set(name, value),
      removeItem: (name) => void storage.delete(name),
    },
    nextFrame: (run) => queueMicrotask(run),
    setPlace: (place) => void places.push(place),
    fetch: async (input, init) => await fetch(new Request(input, init)),
  };
  return { state: new AppState(host), storage, places };
}

/** Resolves once a signal has a value that `accepts`. */
function until<Value>(signal: ReadonlySignal<Value>, accepts: (value: Value) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = signal.subscribe((value) => accepts(value) && queueMicrotask(() => (stop(), resolve())));
  });
}

/** Runs the demo's prompt and allows its call. */
async function runDemo(state: AppState): Promise<RunView> {
  const running = state.run();
  await until(
    state.open_questions,
    ({ length }) => length > 0,
  );
  await state.answer(state.open_questions.value[0]!, "allow");
  await running;
  return state.conversation.value.at(-1)!;
}

function textsOf({ thread }: RunView): string[] {
  return thread.value!.items.flatMap((item) =>
    item.kind === "prompt" || item.kind === "text" ? item.text : []
  );
}

Deno.test("the demo runs, and a page that is loaded again shows it and what is still to come", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state, places } = pageOf(preamp.fetch);
  await state.start("");
  assertEquals([state.plan.name.value, state.problem.value], ["demo", null]);
  const running = state.run();
  await until(
    state.open_questions,
    ({ length }) => length > 0,
  );
  const again = pageOf(preamp.fetch);
  await again.state.start(places.at(-1)!);
  const [view] = again.state.conversation.value;
  await until(
    again.state.open_questions,
    ({ length }) => length > 0,
  );
  await again.state.answer(again.state.open_questions.value[0]!, "allow");
  await running;
  await until(view!.status, (status) => status === "completed");
  assertEquals(textsOf(view!), ["What is 6 × 7?", "6 × 7 is 42."]);
  assertEquals(state.conversation.value.map(textsOf), [textsOf(view!)]);
});

Deno.test("a key that is refused is asked for again, and one that is right opens the place", async () => {
  await using preamp = createPreamp({
    authenticate: (key) => key === "right" ? { name: "a", namespace: "a", origin: "operator" } : null,
  });
  const { state, storage } = pageOf(preamp.fetch);
  await state.start("");
  assertEquals([state.needs_key.value, state.overlay.value, state.problem.value], [true, "key", null]);
  await state.useKey("pk_…", true);
  assertEquals(state.problem.value, "A key is a word of ASCII letters, digits and signs: copy it again");
  await state.useKey("wrong", true);
  assertEquals([state.overlay.value, state.problem.value], ["key", "The server does not know this key."]);
  await state.useKey("right", false);
  assertEquals([state.needs_key.value, state.overlay.value, state.plan.name.value], [false, null, "demo"]);
  assertEquals([...storage.values()].filter((value) => /right|wrong/.test(value)), []);
});

Deno.test("what if: from an entry on with another plan, beside the first run; cancelled, nothing changes", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state, places } = pageOf(preamp.fetch);
  await state.start("");
  const first = await runDemo(state);
  const { value: draft } = state.plan.text;
  state.plan.edit(`${draft}# mine\n`);

  await state.beginWhatIf(first, 13);
  assertEquals([state.selected_seq.value, state.pane.value], [13, "plan"]);
  assert(state.plan.text.value.includes("Be brief.") && !state.plan.text.value.includes("# mine"));
  await state.cancelWhatIf();
  assertEquals([state.plan.text.value, state.plan.name.value], [`${draft}# mine\n`, "demo"]);

  await state.beginWhatIf(first, 13);
  state.plan.edit(state.plan.text.value.replace("Be brief.", "Rhyme.").replace("  - tool-calculator\n", ""));
  await state.runWhatIf();
  const compared = state.compared.value!;
  assertEquals(places.at(-1), `#/compare/${first.id}/${compared.right.id}`);
  await until(compared.right.status, (status) => status === "completed");
  assertEquals(compared.fork.value, 13);
  assertEquals(compared.aligned.value.difference?.step, 1);
  assert(
    compared.aligned.value.difference?.message.startsWith(
      'A calls calculator {"expression":"6*7"}; B writes',
    ),
  );
  const { changes, lines } = compared.plans.value!;
  assertEquals(changes?.narrows.map(({ path }) => path), ["tools[0]"]);
  assert(lines.includes("+system: You are the demo agent of Preamp. Rhyme."), lines);

  const again = pageOf(preamp.fetch); // the place alone shows the same
  await again.state.start(places.at(-1)!);
  await until(again.state.compared.value!.left.status, (status) => status === "completed");
  await until(again.state.compared.value!.right.status, (status) => status === "completed");
  assertEquals(again.state.compared.value!.aligned.value.difference, compared.aligned.value.difference);
});

Deno.test("what if with the same plan does the same, and its question is answered beside the first run", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const first = await runDemo(state);
  await state.beginWhatIf(first, 11);
  await state.runWhatIf();
  const { right, aligned, plans } = state.compared.value!;
  await until(
    state.open_questions,
    ({ length }) => length > 0,
  );
  assertEquals([aligned.value.difference, aligned.value.ended], [null, false]);
  await state.answer(state.open_questions.value[0]!, "allow");
  await until(right.status, (status) => status === "completed");
  assertEquals([aligned.value.difference, aligned.value.ended, plans.value?.lines], [null, true, ""]);
});

Deno.test("history: what waits first, by status, deleted for ever; a session opens its conversation", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const first = await runDemo(state);
  const waits = await state.client.run({ prompt: "What is 2 × 3?" });
  const history = new History(state.client);
  await history.load();
  assertEquals(history.waiting.value.map(({ id }) => id), [waits.id]);
  assertEquals(history.runs.items.value.map(titleOf), ["What is 2 × 3?", "What is 6 × 7?"]);
  assertEquals(history.sessions.items.value.map(nameOf), ["What is 2 × 3?", "What is 6 × 7?"]);
  await history.runs.search("6 WHAT");
  assertEquals(history.runs.items.value.map(({ id }) => id), [first.id]);
  await history.runs.search("nothing like it");
  assertEquals(history.runs.items.value, []);
  await history.runs.search("");
  await history.filter("completed");
  assertEquals(history.runs.items.value.map(({ id }) => id), [first.id]);
  await history.deleteRun(first.id);
  assertEquals([history.runs.items.value, history.runs.cursor.value], [[], null]);
  await state.attempt(() => state.compare(first.id, waits.id));
  assertEquals([state.compared.value, state.problem.value?.includes(first.id)], [null, true]);
  await state.openSession(waits.session_id);
  assertEquals(state.current.value?.id, waits.id);
  await state.client.cancel(waits.id, "immediate");
  await until(state.current.value!.status, (status) => status === "cancelled");
});

Deno.test("history has pages", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  const ids: string[] = [];
  for (let count = 0; count < 27; count++) ids.unshift((await state.client.run({ prompt: "hello" })).id);
  const history = new History(state.client);
  await history.load();
  assertEquals([history.runs.items.value.length, history.runs.cursor.value === null], [25, false]);
  await history.runs.load(true);
  assertEquals(history.runs.items.value.map(({ id }) => id), ids);
  assertEquals(history.runs.cursor.value, null);
});

Deno.test("the colours that the user chose are kept for the tab, until the system's are followed again", () => {
  const { state, storage } = pageOf(() => Response.json({}));
  assertEquals(state.theme.value, null);
  state.setTheme("dark");
  assertEquals(pageOf(() => Response.json({}), Object.fromEntries(storage)).state.theme.value, "dark");
  state.setTheme(null);
  assertEquals([...storage], []);
});

/** A fetch whose requests that `holds` accepts wait for `go`; `signals` are those of all requests. */
function gate(fetch: Fetch, holds: (request: Request) => boolean) {
  const { promise, resolve: go } = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const gated = async (request: Request) => {
    signals.push(request.signal);
    if (holds(request)) await promise;
    const response = await fetch(request);
    const { signal } = request; // as in a browser, it ends the body too
    return new Response(response.body?.pipeThrough(new TransformStream(), { signal }), response);
  };
  return { fetch: gated, go, signals };
}

Deno.test("of two runs that are opened in a row the last one is shown, whatever is answered first", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const setup = pageOf(preamp.fetch).state;
  const [first, second] = [
    await setup.client.run({ prompt: "one" }),
    await setup.client.run({ prompt: "two" }),
  ];
  const { fetch, go } = gate(preamp.fetch, ({ url }) => url.endsWith(first.id));
  const { state } = pageOf(fetch);
  const opening = state.attempt(() => state.openRun(first.id));
  await state.openRun(second.id);
  go();
  assertEquals([await opening, state.problem.value], [false, null]);
  assertEquals([state.current.value?.id, state.conversation.value.length], [second.id, 1]);
});

Deno.test("a run that starts late is not shown in a conversation that was opened since, and never twice", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { id } = await pageOf(preamp.fetch).state.client.run({ prompt: "other" });
  const { fetch, go } = gate(
    preamp.fetch,
    ({ url, method }) => method === "POST" && url.endsWith("/v1/runs"),
  );
  const { state } = pageOf(fetch);
  await state.start("");
  const running = state.run();
  state.prompt.value = "again, by a second click";
  await state.run();
  assertEquals([state.is_starting.value, state.prompt.value], [true, "again, by a second click"]);
  await state.openRun(id);
  go();
  await running;
  assertEquals(state.conversation.value.map((view) => view.id), [id]);
  assertEquals((await state.client.listRuns()).data.length, 2);
});

Deno.test("the streams of what is not shown any more are closed, and it can be opened again", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { fetch, signals } = gate(preamp.fetch, () => false);
  const { state } = pageOf(fetch);
  await state.start("");
  const running = state.run();
  await until(state.open_questions, ({ length }) => length > 0);
  const { id } = state.current.value!;
  state.newConversation();
  await running;
  assertEquals([state.problem.value, state.open_questions.value], [null, []]);
  assertEquals(signals.filter(({ aborted }) => aborted).length, 1);
  await state.openRun(id);
  await until(state.open_questions, ({ length }) => length > 0);
  state.closeDeleted(state.current.value!.run.value!.session_id);
  assertEquals([state.conversation.value, state.current.value], [[], null]);
  await state.client.cancel(id, "immediate");
});

Deno.test("a run that ended stays ended when an older run object comes later", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(async (request) => {
    const response = await preamp.fetch(request);
    if (!new URL(request.url).search.includes("session_id") || state.conversation.value.length === 0) {
      return response;
    }
    const { data: [run], next_cursor } = await response.json();
    return Response.json({ data: [{ ...run, status: "running" }], next_cursor });
  });
  await state.start("");
  const view = await runDemo(state);
  const { announcement } = state;
  announcement.value = "";
  await state.openRun(view.id);
  assertEquals([state.current.value === view, view.status.value, state.active.value], [
    true,
    "completed",
    null,
  ]);
  assertEquals([view.run.value?.status, announcement.value], ["completed", ""]);
});

Deno.test("the run in progress is steered and cancelled, not one of its session that waits", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  const plan = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses: [{ text: "late", delay_ms: 600_000 }] } }],
  };
  const { id, session_id } = await state.client.start({ prompt: "one", plan });
  const { id: later } = await state.client.start({ prompt: "two", plan, session_id, if_busy: "queue" });
  await state.openRun(later);
  assertEquals([state.current.value?.id, state.active.value?.id], [later, id]);
  await state.client.cancel(later, "immediate");
  await state.client.cancel(id, "immediate");
  await until(state.active, (view) => view === null);
});

Deno.test("a message is changed or sent again in the place of the earlier one; the old session stays", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const first = await runDemo(state);
  state.prompt.value = "What is 2 × 3?";
  const second = await runDemo(state);
  state.edit(second);
  assertEquals(state.prompt.value, "What is 2 × 3?");
  state.prompt.value = "What is 6 × 7?";
  const edited = await runDemo(state);
  assertEquals(state.conversation.value, [first, edited]);
  assertEquals(textsOf(edited)[0], "What is 6 × 7?");
  const [old, fresh] = [second, edited].map(({ run }) => run.value!.session_id);
  assert(old !== fresh && first.run.value!.session_id === old);
  const { data } = await state.client.listMessages(fresh!);
  assertEquals(data.filter(({ role }) => role === "user").map(({ content }) => content), [
    "What is 6 × 7?",
    "What is 6 × 7?",
  ]);
  const again = pageOf(preamp.fetch).state;
  await again.openRun(edited.id);
  assertEquals([again.conversation.value.length, again.forked_from.value], [1, old]);
  await again.openSession(old!);
  assertEquals([again.conversation.value.length, again.forked_from.value], [2, null]);
  const retrying = state.retry(edited);
  await until(state.open_questions, ({ length }) => length > 0);
  await state.answer(state.open_questions.value[0]!, "deny");
  await retrying;
  assertEquals(state.conversation.value.length, 2);
  assertEquals([state.edited.value, state.problem.value], [null, null]);
});

const SLOW = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { responses: [{ text: "late", delay_ms: 600_000 }] } }],
};

Deno.test("stop ends the answer at once", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  state.plan.edit(JSON.stringify(SLOW));
  const running = state.run();
  await until(state.active, (view) => view !== null);
  await until(state.active.value!.calls, ({ length }) => length > 0);
  await state.stop();
  await running;
  assertEquals(state.current.value!.status.value, "cancelled");
  const asked = state.current.value!.entries.find(({ event }) => event === "cancel:requested");
  assertEquals(asked?.data.state, "immediate");
});

Deno.test("stop waits for a tool that runs, and a second stop ends it too", async () => {
  let ends: AbortSignal | undefined;
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    input: z.object({}),
    execute: (_, context) =>
      new Promise<string>((_, reject) => {
        const { signal } = context!;
        ends = signal;
        signal.addEventListener("abort", () => reject(signal.reason));
      }),
  });
  await using preamp = createPreamp({ authenticate: null, modules: { "tool-wait": wait } });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const responses = [{ tool_calls: [{ name: "wait", arguments: {} }] }, { text: "never" }];
  state.plan.edit(JSON.stringify({
    session: SLOW.session,
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: ["tool-wait"],
  }));
  const running = state.run();
  await until(state.active, (view) => view !== null);
  const view = state.active.value!;
  await until(view.count, () => view.transcript.runs_tool);
  await state.stop();
  await until(view.cancelling, (cancelling) => cancelling);
  assertEquals([view.transcript.runs_tool, ends?.aborted ?? false], [true, false]);
  await state.stop();
  await running;
  const modes = view.entries.filter(({ event }) => event === "cancel:requested").map(({ data }) =>
    data.state
  );
  assertEquals([view.status.value, modes.at(0)], ["cancelled", "graceful"]);
});

Deno.test("what a person allows for a run is not asked again in it", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const call = { tool_calls: [{ name: "calculator", arguments: { expression: "1+1" } }] };
  state.plan.edit(JSON.stringify({
    session: SLOW.session,
    providers: [{ module: "provider-mock", config: { responses: [call, call, { text: "2" }] } }],
    tools: ["tool-calculator"],
    hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
  }));
  const running = state.run();
  await until(state.open_questions, ({ length }) => length > 0);
  await state.allowFor("run", state.open_questions.value[0]!);
  await running;
  const { questions, status } = state.current.value!;
  assertEquals([status.value, questions.value.map(({ status }) => status)], ["completed", [
    "granted",
    "granted",
  ]]);
});

Deno.test("what a person allows in a conversation holds for its later runs, and not for another one", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const running = state.run();
  await until(state.open_questions, ({ length }) => length > 0);
  await state.allowFor("conversation", state.open_questions.value[0]!);
  await running;
  state.prompt.value = "What is 2 × 3?";
  await state.run();
  assertEquals(state.current.value!.status.value, "completed");
  state.newConversation();
  state.prompt.value = "What is 6 × 7?";
  await runDemo(state); // asks again
});

Deno.test("runs that wait elsewhere are counted, those on the screen are not", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const running = state.run();
  await until(state.open_questions, ({ length }) => length > 0);
  await state.countWaiting();
  assertEquals(state.waiting_elsewhere.value, 0);
  await state.client.run({ prompt: "What is 2 × 3?" });
  await state.countWaiting();
  assertEquals(state.waiting_elsewhere.value, 1);
  await state.answer(state.open_questions.value[0]!, "deny");
  await running;
});

Deno.test("a run of the page waits at its limits, unless the plan says what happens there", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  assertEquals(state.request.limits, { on_limit: "pause" });
  state.plan.edit(`${state.plan.text.value}\n# on_limit: end`);
  assertEquals(state.request.limits, undefined);
});

Deno.test("the plan folds away with the first run, and stays as a person wants it", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state, storage } = pageOf(preamp.fetch);
  await state.start("");
  assertEquals(state.plan_folded.value, false);
  await runDemo(state);
  assertEquals(state.plan_folded.value, true);
  state.foldPlan(false);
  state.setWidth("plan", 99);
  state.prompt.value = "What is 6 × 7?";
  await runDemo(state);
  const again = pageOf(preamp.fetch, Object.fromEntries(storage)).state;
  assertEquals([state.plan_folded.value, again.plan_folded.value, again.widths.value], [
    false,
    false,
    { plan: 45, log: 30 },
  ]);
});

Deno.test("a second click on an answer is no failure", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const { state } = pageOf(preamp.fetch);
  await state.start("");
  const running = state.run();
  await until(state.open_questions, ({ length }) => length > 0);
  const [question] = state.open_questions.value;
  await Promise.all([state.answer(question!, "deny"), state.answer(question!, "deny")]);
  assertEquals([state.problem.value, state.announcement.value], [null, "Answered: deny"]);
  await running;
});
