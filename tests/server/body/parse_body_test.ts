import { assert, assertEquals, assertRejects, assertStrictEquals } from "../../assert.ts";
import { DOCUMENT_LIMITS } from "../../../src/plan/parse/document_limits.ts";
import { parsePlanText } from "../../../src/plan/parse/parse.ts";
import { readYaml } from "../../../src/plan/parse/yaml_tree.ts";
import { readDocument } from "../../../src/server/body/parse_body.ts";
import { systemClock } from "../../../src/process/system_clock.ts";

const LIMITS = { max_bytes: 1_000_000, deadline_ms: 1000, plan: DOCUMENT_LIMITS };

function bodyOf(text: string): Promise<{ kind: string; text?: string }> {
  const headers = { "content-type": "application/yaml" };
  const request = new Request("http://localhost/", { method: "POST", body: text, headers });
  return readDocument(request, LIMITS, systemClock());
}

Deno.test("readDocument() and the plan's reader parse the YAML of one body once", async () => {
  const written = `session: {orchestrator: loop-basic, context: context-simple}\ndescription: ${
    "long ".repeat(20_000)
  }\n`;
  const tree = await readYaml(written, DOCUMENT_LIMITS);
  const document = await bodyOf(written);
  assertEquals(document.kind, "plan");
  await parsePlanText(document.text ?? "");
  // a second parse would have replaced the cached tree
  assertStrictEquals(await readYaml(written, DOCUMENT_LIMITS), tree);
});

Deno.test("readYaml() parses again for another text and for other limits", async () => {
  const tree = await readYaml("a: 1", DOCUMENT_LIMITS);
  assert(await readYaml("a: 1", { ...DOCUMENT_LIMITS, max_nodes: 2 }) !== tree);
  assert(await readYaml("a: 2", DOCUMENT_LIMITS) !== tree);
});

Deno.test("readDocument() returns invalid YAML as a plan, and the plan's reader reports the error", async () => {
  const document = await bodyOf("session: [\n");
  assertEquals(document, { kind: "plan", text: "session: [\n" });
  const error = await assertRejects(() => parsePlanText("session: [\n")) as { details?: { line?: number }[] };
  assertEquals(error.details?.[0]?.line, 2);
});
