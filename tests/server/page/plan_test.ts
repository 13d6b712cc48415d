/** The plan pane without a browser: the state of the plan, editing, and texts to copy. */
import { pathToFileURL } from "node:url";
import { createPreamp } from "preamp/server";
import { PreampApiError, PreampClient } from "preamp/client";
import { curlText, typescriptText } from "../../../src/server/page/app/plan/copy_as.ts";
import {
  type Edit,
  hiddenIn,
  indent,
  lineAt,
  marksOf,
  newLine,
  offsetOf,
} from "../../../src/server/page/app/plan/editing.ts";
import {
  limitsText,
  planLabel,
  planSentence,
  refusedTo,
  touchedBy,
} from "../../../src/server/page/app/plan/words.ts";
import { PlanDraft } from "../../../src/server/page/app/state/plan_draft.ts";
import { tabStorage, type TextStorage } from "../../../src/server/page/app/state/tab_storage.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { temporaryFolder } from "../../support/folder.ts";

const OWN = `session:
  orchestrator: loop-streaming
  context: context-simple
providers: [provider-mock]
`;

function memory(): TextStorage {
  const texts = new Map<string, string>();
  return {
    getItem: (name) => texts.get(name) ?? null,
    setItem: (name, text) => void texts.set(name, text),
    removeItem: (name) => void texts.delete(name),
  };
}

/** Opens a server with the example plans, and a draft of it. */
function open(storage = memory(), plans = new URL("../../../plans/", import.meta.url)) {
  const preamp = createPreamp({ authenticate: null, plans });
  const client = new PreampClient({
    url: "http://localhost",
    fetch: (input, init) => preamp.fetch(new Request(input, init)),
  });
  return { draft: new PlanDraft(client, storage), client, storage, [Symbol.asyncDispose]: preamp.close };
}

/** Resolves when the text has been checked. */
async function reviewed({ phase }: PlanDraft): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const dispose = phase.subscribe((value) => value !== "checking" && resolve(value));
  return await promise.finally(dispose);
}

function applied(text: string, edit: Edit | null): string {
  return edit === null ? text : text.slice(0, edit.from) + edit.text + text.slice(edit.to);
}

Deno.test("PlanDraft begins with the demo plan, explained, and sends no plan while it is unchanged", async () => {
  await using server = open();
  const { draft } = server;
  await draft.load();
  assertEquals(draft.name.value, "demo");
  assertEquals(await reviewed(draft), "valid");
  assertMatch(planSentence(draft.explanation.value!), /^6 modules\. May touch nothing outside; .*calculator/);
  assertEquals(draft.choice(false), {});
  assertEquals(draft.choice(true), { plan: draft.text.value });
  draft.edit(" ");
  assertEquals([await reviewed(draft), draft.explanation.value, draft.choice(true)], ["valid", null, {}]);
});

Deno.test("PlanDraft reports findings at their lines, and of a refused run too", async () => {
  await using server = open();
  const { draft, client } = server;
  await draft.load();
  draft.edit(OWN.replace("providers", "providerz"));
  assertEquals(await reviewed(draft), "invalid");
  const [finding] = draft.findings.value;
  assertEquals([finding?.level, finding?.line, finding?.path], ["error", 4, "providerz"]);
  draft.edit(OWN);
  assertEquals(await reviewed(draft), "valid");
  assertEquals(draft.findings.value, []);
  const error = await client.run({ prompt: "Hi", plan: `${OWN}tools: [tool-nothing]\n` }).catch((error) =>
    error
  );
  assert(error instanceof PreampApiError);
  draft.refuse(error);
  assertEquals(draft.phase.value, "invalid");
  assertMatch(draft.findings.value[0]!.message, /tool-nothing/);
});

Deno.test("PlanDraft marks the lines of the shown text for a named plan, not those of its file", async () => {
  const plans = await Deno.makeTempDir();
  await Deno.writeTextFile(`${plans}/typo.yaml`, `# a comment\n${OWN}tools: [tool-bsh]\n`);
  await using server = open(memory(), pathToFileURL(`${plans}/`));
  const { draft } = server;
  await draft.load();
  await draft.choose("typo");
  assertEquals([await reviewed(draft), draft.choice(false)], ["invalid", { plan_ref: "typo" }]);
  assertEquals(draft.findings.value.map(({ path, line }) => [path, line]), [["tools[0]", 7]]);
  draft.edit(`${draft.text.value}\n`);
  assertEquals([await reviewed(draft), draft.findings.value.map(({ line }) => typeof line)], ["invalid", [
    "number",
  ]]);
  await Deno.remove(plans, { recursive: true });
});

Deno.test("PlanDraft sends the name of an unchanged plan, and the text of a changed one, also after its run", async () => {
  await using server = open();
  const { draft } = server;
  await draft.load();
  await draft.choose("calculator");
  assertEquals(draft.choice(false), { plan_ref: "calculator" });
  draft.model.value = "mock/other";
  assertEquals(draft.choice(false), { plan: draft.text.value, model: "mock/other" });
  draft.model.value = "";
  const changed = draft.text.value.replace("max_tool_calls: 5", "max_tool_calls: 6");
  draft.edit(changed);
  assertEquals(await reviewed(draft), "valid");
  assertEquals(draft.changes.value?.widens.map(({ path }) => path), ["limits.max_tool_calls"]);
  draft.ran(changed);
  assertEquals(draft.choice(true), { plan: changed });
  assertEquals(await reviewed(draft), "valid");
  assertEquals(draft.changes.value, null);
});

Deno.test("PlanDraft takes the plan of a run that is opened, unless it has it already", async () => {
  await using server = open();
  const { draft, client } = server;
  await draft.load();
  const demo = await client.start({ prompt: "Hi" });
  await draft.chooseRun(demo.id, demo.plan_hash, true);
  assertEquals(draft.name.value, "demo");
  draft.edit(`${draft.text.value}# mine\n`);
  const own = await client.start({ prompt: "Hi", plan: OWN });
  await draft.chooseRun(own.id, own.plan_hash, true);
  assertEquals([draft.name.value, draft.is_changed.value], [own.id, false]);
  assertEquals(draft.choice(true), { plan: draft.text.value });
  assertEquals(Object.keys(draft.drafts.value), ["demo"]);
  assertEquals(planLabel(draft.name.value), `of ${own.id.slice(0, 10)}…`);
  assertEquals(await reviewed(draft), "valid");
});

Deno.test("PlanDraft keeps the plan of the server that an opened conversation has, and checks a change of it", async () => {
  await using folder = await temporaryFolder();
  const rights = `${OWN}tools: [{ module: tool-bash, permissions: { run: [bash] } }]\n`;
  await Deno.writeTextFile(`${folder.path}/free.yaml`, rights);
  await using server = open(memory(), new URL(`file://${folder.path}/`));
  const { draft, client } = server;
  await draft.load();
  const run = await client.start({ prompt: "Hi", plan_ref: "free" });
  await draft.chooseRun(run.id, run.plan_hash, true);
  const { value: text } = draft.text;
  assertEquals([draft.name.value, await reviewed(draft), draft.findings.value], [run.id, "valid", []]);
  assertEquals([draft.is_kept.value, draft.choice(true)], [true, {}]);
  draft.edit(`${text}# mine\n`);
  assertEquals([await reviewed(draft), draft.choice(true).plan], ["invalid", `${text}# mine\n`]);
  draft.edit(text);
  await draft.leaveRun();
  assertEquals([draft.name.value, draft.choice(false)], ["free", { plan_ref: "free" }]);
  await draft.chooseRun(run.id, run.plan_hash, true);
  assertEquals(draft.choice(true), { plan_ref: "free" }, "it has the plan by its name");
  await draft.choose(null);
  draft.edit(OWN);
  await draft.chooseRun(run.id, run.plan_hash, false);
  assertEquals(
    [await reviewed(draft), draft.choice(true).plan],
    ["invalid", text],
    "not the session's last one",
  );
});

Deno.test("PlanDraft explains the plan on the chosen model, and says why a model is refused", async () => {
  await using server = open();
  const { draft } = server;
  await draft.load();
  draft.setModel("anthropic/claude-sonnet-5-5");
  assertEquals(await reviewed(draft), "valid");
  assertMatch(planSentence(draft.explanation.value!), /sends prompts to api\.anthropic\.com/);
  draft.setModel("nothing/of-it");
  assertEquals(await reviewed(draft), "invalid");
  assertMatch(draft.findings.value[0]!.message, /no provider "nothing"/);
});

Deno.test("PlanDraft keeps changes when another plan is chosen, and over a reload", async () => {
  await using server = open();
  const { draft, storage } = server;
  await draft.load();
  await draft.choose("calculator");
  const original = draft.text.value;
  draft.edit(`${original}# mine\n`);
  await Promise.all([draft.choose("minimal"), draft.choose("todo")]);
  assertEquals([draft.name.value, draft.is_changed.value], ["todo", false]);
  await draft.choose("calculator");
  assertEquals(draft.text.value, original);
  await draft.choose("calculator", true);
  assertEquals(draft.text.value, `${original}# mine\n`);
  assertEquals(draft.drafts.value, {});
  await draft.choose(null);
  assertEquals(draft.name.value, null);
  draft.edit(OWN);
  await draft.choose("todo");
  assertEquals(draft.drafts.value, { "": OWN });

  await using again = open(storage);
  await again.draft.load();
  assertEquals([again.draft.name.value, again.draft.is_changed.value], ["todo", false]);
  await again.draft.choose(null);
  assertEquals(again.draft.text.value, OWN);
  await reviewed(again.draft);
  await reviewed(draft);
});

Deno.test("PlanDraft takes a text for which the storage has no space", async () => {
  const full = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  await using server = open(tabStorage(() => ({ ...memory(), setItem: full })));
  const { draft } = server;
  await draft.load();
  draft.edit(OWN);
  assertEquals([draft.text.value, await reviewed(draft)], [OWN, "valid"]);
});

Deno.test("newLine() continues the indentation, deeper after a colon and below the first field of a list", () => {
  const after = (line: string) => newLine(line, line.length, line.length).text;
  assertEquals(after("tools:"), "\n  ");
  assertEquals(after("  - module: tool-bash"), "\n    ");
  assertEquals(after("  - tool-todo"), "\n  ");
  assertEquals(after("system: |"), "\n  ");
  assertEquals(after("  context: context-simple"), "\n  ");
  assertEquals(applied("a:\n  b", newLine("a:\n  b", 6, 6)), "a:\n  b\n  ");
});

Deno.test("indent() moves the selected lines, and back", () => {
  const text = "a\nb\n\nc\n";
  const deeper = indent(text, 0, 4, true);
  assertEquals(applied(text, deeper), "  a\n  b\n\nc\n");
  assertEquals(applied("  a\n  b\n\nc\n", indent("  a\n  b\n\nc\n", 0, 8, false)), text);
  assertEquals(indent("a", 0, 1, false), null);
});

Deno.test("lineAt() and offsetOf() find places, the nearest one for a place that is not there", () => {
  const text = "one\ntwo\n";
  assertEquals([0, 3, 4, 8].map((at) => lineAt(text, at)), [1, 1, 2, 3]);
  assertEquals([offsetOf(text, 2, 2), offsetOf(text, 1, 99), offsetOf(text, 99)], [5, 3, 8]);
});

Deno.test("marksOf() has one mark for a line, an error if one finding is", () => {
  const marks = marksOf([
    { level: "warning", path: "a", message: "first", line: 2, hint: "do" },
    { level: "error", path: "b", message: "second", line: 2 },
    { level: "error", path: "", message: "of no line" },
  ]);
  assertEquals(marks, [{ line: 2, level: "error", text: "first: do\nsecond" }]);
});

Deno.test("hiddenIn() finds characters that hide text, and none that scripts and emoji need", () => {
  const [found, ...others] = hiddenIn("a: b\nc: \u202e # x\n");
  assertEquals([found?.line, found?.column, others], [2, 4, []]);
  assertMatch(found!.message, /U\+202E/);
  assertEquals(hiddenIn("سلام\t👩\u200d👧\r\n"), []);
});

Deno.test("touchedBy() and refusedTo() say what a module may touch and may not", () => {
  const module = {
    module: "tool-x",
    type: "tool",
    path: "tools[0]",
    description: null,
    url: null,
    isolation: "process",
    prompts_to: "api.example.com",
    servers: [{ name: "mail", transport: "command", target: "" }],
    permissions: { granted: { net: true, read: ["./src"], run: [] }, refused: { write: ["/"] } },
  };
  assertEquals(touchedBy(module), [
    "read ./src",
    "reach every host",
    "send prompts to api.example.com",
    "use the tools of mail (command)",
  ]);
  assertEquals(refusedTo(module), ["write /"]);
  assertEquals(limitsText({ max_total_tokens: 1_000_000, max_cost_usd: "5" }), "1,000,000 tokens, $5");
});

const HOSTILE = `${OWN}system: |\n  it's \`$HOME\` $\${HOME} \\ "END"\n  END\n`;

Deno.test("curlText() and typescriptText() run as they are, with a plan full of quotes", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const seen: unknown[] = [];
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    seen.push([request.headers.get("authorization"), await request.clone().json()]);
    return await preamp.fetch(request);
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const body = { prompt: "it's `x` $HOME", plan: HOSTILE };
  const env = { PREAMP_API_KEY: "key-of-env" };
  const run = async (command: string, args: string[]) => {
    const cwd = new URL("../../../", import.meta.url);
    const { stdout, stderr } = await new Deno.Command(command, { args, cwd, env }).output();
    return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  };
  assertMatch(await run("sh", ["-c", curlText({ url, body, needs_key: true })]), /event: run:end/);
  assertMatch(
    await run(Deno.execPath(), ["eval", typescriptText({ url, body, needs_key: true })]),
    /^completed /m,
  );
  assertEquals(seen, [["Bearer key-of-env", body], ["Bearer key-of-env", body]]);
});
