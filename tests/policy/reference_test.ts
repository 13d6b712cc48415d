import { parsePolicy } from "../../src/policy/parse_policy.ts";
import { ALL_SETTINGS, defaultPolicy } from "../../src/policy/settings.ts";
import { exampleDocument, referencePage } from "../../src/policy/reference.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";

Deno.test("exampleDocument() parses as the default policy", async () => {
  assertEquals(await parsePolicy(exampleDocument()), defaultPolicy());
});

Deno.test("exampleDocument() has every setting once, below its meaning, on lines of limited length", () => {
  const lines = exampleDocument().split("\n");
  for (const { path, meaning } of ALL_SETTINGS) {
    const key = path.split(".").at(-1);
    const at = lines.findIndex((line, index) =>
      line.trim().startsWith(`${key}:`) && commentAbove(lines, index).startsWith(meaning)
    );
    assert(at > 0, path);
  }
  assertEquals(lines.filter((line) => line.length > 130), []);
});

/** Returns the text of the comment that ends above a line. */
function commentAbove(lines: readonly string[], index: number): string {
  let first = index;
  while (lines[first - 1]?.trim().startsWith("#")) first--;
  return lines.slice(first, index).map((line) => line.trim().slice(2)).join(" ");
}

Deno.test("the policies example of exampleDocument() is valid", async () => {
  const [, policies = ""] = exampleDocument().split("policies: {}\n");
  const text = `policies:\n${policies.replaceAll(/^#/gm, "")}`;
  assertEquals((await parsePolicy(text)).policies, {
    small: { limits: { max_total_tokens: 50_000 }, permissions: { max: { net: [] } } },
  });
});

Deno.test("src/docs/settings.md is what preamp config reference prints, formatted", async () => {
  const written = await Deno.readTextFile(new URL("../../src/docs/settings.md", import.meta.url));
  const advice =
    "run: deno run -A main.ts config reference > src/docs/settings.md; deno fmt src/docs/settings.md";
  assert(unformatted(written) === unformatted(referencePage()), advice);
});

/** Removes what formatting changes: column widths and line breaks. */
function unformatted(text: string): string {
  return text.replaceAll(/-+/g, "-").replaceAll(/\s+/g, " ");
}

Deno.test("the meaning of each setting is one sentence", () => {
  for (const { path, meaning, range } of ALL_SETTINGS) {
    assertMatch(meaning, /^[A-Z].{15,}[^.]$/, path);
    assert(range !== "", path);
  }
  assertStringIncludes(referencePage(), "| `max_concurrent_runs` |");
});
