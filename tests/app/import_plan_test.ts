import { importPlan, planOfBundle } from "../../src/app/import_plan.ts";
import { createModuleTable } from "../../src/app/module_table.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { BundleInput } from "../../src/app/types.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../assert.ts";
import { inFolder } from "../support/folder.ts";

const OPERATOR: Caller = { name: "cli", namespace: "test", origin: "operator" };
const DEPS = { policy: defaultPolicy(), modules: createModuleTable() };
const HARBOR = new URL("../fixtures/bundles/harbor/", import.meta.url);

function importOf(source: string, more: Partial<BundleInput> = {}, deps = DEPS) {
  return importPlan({ source, names: new Map(), update: false, ...more }, deps);
}

async function writeAll(folder: string, texts: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(texts)) {
    const file = `${folder}/${path}`;
    await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(file, text);
  }
}

Deno.test("importPlan() makes a plan of a whole bundle, which explain describes", async () => {
  await inFolder(async (workspace) => {
    await Deno.writeTextFile(`${workspace}/berths.txt`, "1 Albatros\n2 free\n");
    const base_url = `file://${workspace}/plan.yaml`;
    const { plan, modules } = await importOf(HARBOR.href, { base_url });
    assertEquals(modules.left_out.toSorted(), [
      "hooks-logging",
      "hooks-session-naming",
      "hooks-streaming-ui",
      "tool-lsp",
      "tool-recipes",
    ]);
    assertEquals((plan.system as string).match(/<context_file /g)?.length, 23);
    await using runtime = createRuntime({ workspace: new URL(`file://${workspace}/`) });
    const checked = await runtime.plans.check({ plan }, OPERATOR, { base_url });
    assertEquals(checked.errors, []);
    const { summary } = await runtime.plans.explain({ plan }, OPERATOR, { base_url });
    assertStringIncludes(JSON.stringify(summary), "run bash");
  });
});

Deno.test("a bundle is used as a plan, with what is missing as warnings", async () => {
  const base_url = new URL("bundle.md", HARBOR).href;
  await using runtime = createRuntime();
  const plan = await Deno.readTextFile(new URL(base_url));
  const { ok, warnings } = await runtime.plans.check({ plan }, OPERATOR, { base_url });
  assert(ok);
  assertStringIncludes(
    warnings.map(({ message }) => message).join("\n"),
    "tool-lsp of agents/builder.md is left out",
  );
  const on_model = await runtime.plans.check({ plan, model: "openai/gpt-x" }, OPERATOR, { base_url });
  assertEquals(on_model.warnings.length, warnings.length);
});

Deno.test("planOfBundle() of a request reads no file", async () => {
  const text = "---\nbundle: { name: root }\ncontext: { include: ['root:a.md', /etc/hostname] }\n---\nHi\n";
  await assertRejects(() => planOfBundle(text, undefined, DEPS), Error, "files of its own folder only");
  const made = await planOfBundle(text.replace(", /etc/hostname", ""), undefined, DEPS);
  assertMatch(made!.warnings[0]!.message, /"root:a\.md" of the plan is left out/);
  assertEquals(await planOfBundle("session: { orchestrator: loop-basic }\n", undefined, DEPS), null);
});

Deno.test("importPlan() follows no link out of the bundle, and reads regular files only", async () => {
  await inFolder(async (folder) => {
    await writeAll(folder, {
      "secret.txt": "SECRET",
      "b/bundle.yaml": "bundle: { name: b }\ncontext: { include: ['b:link.txt'] }\n",
      "b/inside.txt": "INSIDE",
    });
    await Deno.symlink("../secret.txt", `${folder}/b/link.txt`);
    const source = `file://${folder}/b`;
    await assertRejects(() => importOf(source), Error, "it is a link out of the bundle's folder");
    await Deno.remove(`${folder}/b/link.txt`);
    await Deno.symlink("inside.txt", `${folder}/b/link.txt`);
    assertStringIncludes((await importOf(source)).plan.system as string, "INSIDE");
    await Deno.symlink("b/bundle.yaml", `${folder}/named.yaml`); // the person names it
    assertStringIncludes((await importOf(`file://${folder}/named.yaml`)).plan.system as string, "INSIDE");
    await Deno.remove(`${folder}/b/link.txt`);
    await Deno.symlink("/dev/zero", `${folder}/b/link.txt`);
    await assertRejects(() => importOf(source), Error, "it is a link out of the bundle's folder");
    await Deno.remove(`${folder}/b/link.txt`);
    using large = await Deno.create(`${folder}/b/link.txt`);
    await large.truncate(100 * 1024 * 1024);
    await assertRejects(() => importOf(source), Error, "more than 1000000 bytes");
  });
});

/** Serves texts by their path on loopback. */
function serveTexts(texts: Record<string, string>) {
  const asked: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    const text = texts[pathname];
    if (text?.startsWith("→")) return Response.redirect(text.slice(1), 302);
    return text === undefined ? new Response("", { status: 404 }) : new Response(text);
  });
  return {
    asked,
    url: `http://127.0.0.1:${server.addr.port}`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("importPlan() fetches a bundle, and pins each of its files", async () => {
  const texts: Record<string, string> = {
    "/b/bundle.yaml": "bundle: { name: b }\nincludes: [./more.yaml]\ncontext: { include: ['b:c.md'] }\n",
    "/b/more.yaml": "bundle: { name: more }\ntools: [tool-todo]\n",
    "/b/c.md": "<!-- a comment -->\nCONTEXT",
  };
  await using server = serveTexts(texts);
  const source = `${server.url}/b/bundle.yaml`;
  const first = await importOf(source);
  assertStringIncludes(first.plan.system as string, "CONTEXT");
  assertEquals(first.fetched, 3);
  assertEquals(
    Object.keys(first.lock!.files),
    ["/b/bundle.yaml", "/b/more.yaml", "/b/c.md"].map((path) => server.url + path),
  );
  const lock = first.lock!;
  assertEquals((await importOf(source, { lock })).plan, first.plan);
  texts["/b/c.md"] += "!";
  await assertRejects(() => importOf(source, { lock }), Error, "its bytes are not those of the lock");
  assertStringIncludes((await importOf(source, { lock, update: true })).plan.system as string, "CONTEXT!");
  texts["/b/c.md"] = texts["/b/c.md"]!.slice(0, -1);
  const policy = { ...DEPS.policy, modules: { ...DEPS.policy.modules, frozen: true } };
  await importOf(source, { lock }, { ...DEPS, policy });
  await assertRejects(
    () => importOf(source, {}, { ...DEPS, policy }),
    Error,
    "every fetched file must be in the lock",
  );
});

Deno.test("importPlan() stops a file of another host that is too large", async () => {
  const texts: Record<string, string> = {
    "/bundle.yaml": "bundle: { name: b }\ncontext: { include: ['b:c.md'] }\n",
    "/c.md": "x".repeat(1_000_001),
  };
  await using server = serveTexts(texts);
  await assertRejects(
    () => importOf(`${server.url}/bundle.yaml`),
    Error,
    "the file has more than 1000000 bytes",
  );
});

Deno.test("importPlan() fetches nothing past the policy", async () => {
  await using inner = serveTexts({ "/x.yaml": "bundle: { name: x }\n", "/secret.md": "SECRET" });
  const texts: Record<string, string> = {};
  await using server = serveTexts(texts);
  const source = `${server.url}/bundle.yaml`;
  const refused: [include: string, said: string][] = [
    [`${inner.url}/x.yaml`, "address"],
    ["https://10.0.0.1/x.yaml", "private"],
    ["https://169.254.169.254/latest/bundle.yaml", "link-local"],
    ["https://localhost/bundle.yaml", "loopback"],
    ["http://example.com/bundle.yaml", "http: is for loopback"],
    ["https://user:pw@example.com/bundle.yaml", "user name or password"],
    ["file:///etc/passwd", "files of its own folder only"],
    ["git+https://user:pw@github.com/o/r", "user name or password"],
  ];
  for (const [include, said] of refused) {
    texts["/bundle.yaml"] = `bundle: { name: b }\nincludes: ['${include}']\n`;
    await assertRejects(() => importOf(source), Error, said);
  }
  texts["/bundle.yaml"] = "bundle: { name: b }\nincludes: [./moved.yaml]\n";
  texts["/moved.yaml"] = `→${inner.url}/x.yaml`;
  await assertRejects(() => importOf(source), Error, "address");
  assertEquals(inner.asked, []);
});
