import { assert, assertEquals } from "../../assert.ts";
import { BUILTIN_IDS } from "../../../src/app/module_table.ts";
import { PAGES } from "../../../src/docs/pages.ts";
import { search, type SearchSection } from "../../../src/docs/search.ts";
import { searchSections } from "../../../src/server/docs/search_index.ts";

const INDEX: SearchSection[] = await searchSections([...BUILTIN_IDS]);

/** Returns what a query finds, as `page#anchor`. */
const found = (query: string) =>
  search(INDEX, query).map(({ section }) => `${section.page}#${section.anchor}`);

Deno.test("the search index has every page, its title without an anchor", () => {
  const pages = [...new Set(INDEX.map(({ page }) => page))];
  assertEquals(pages, [...PAGES.map(({ name }) => name), ...BUILTIN_IDS]);
  for (const page of pages) assertEquals(INDEX.find((section) => section.page === page)?.anchor, "", page);
  assert(INDEX.every(({ text }) => !text.includes("\n")));
});

Deno.test("search() finds what people look for in the first three results", () => {
  const wanted: Record<string, string> = {
    "undo": "chat#undo",
    "error codes": "http#errors",
    "postgres": "operating#storage",
    "systemd": "deploy#systemd",
    "mcp": "recipes#tools-of-an-mcp-server",
    "compaction": "context#",
    "approval": "security#approvals",
    "hono": "recipes#a-hono-application",
    "RETENTION.DAYS": "settings#retention",
  };
  const missed = Object.entries(wanted).flatMap(([query, place]) => {
    const places = found(query);
    return places.slice(0, 3).includes(place) ? [] : [`${query}: ${places.slice(0, 5).join(", ")}`];
  });
  assertEquals(missed, []);
});

Deno.test("search() answers a question by its own words, and by others that mean the same", () => {
  const wanted: Record<string, string> = {
    "keep a tool in a folder": "questions#how-do-i-keep-a-tool-in-a-folder",
    "confine a tool to a directory": "questions#how-do-i-keep-a-tool-in-a-folder",
    "bound cost": "questions#how-do-i-bound-the-cost-of-a-run",
    "How do I limit the price of a run?": "questions#how-do-i-bound-the-cost-of-a-run",
    "rotate a key": "questions#how-do-i-rotate-a-key",
    "replace credentials": "questions#how-do-i-rotate-a-key",
    "come from Amplifier": "questions#i-come-from-amplifier-what-is-the-same",
    "migrate from amplifier": "questions#i-come-from-amplifier-what-is-the-same",
    "test a plan": "questions#how-do-i-test-a-plan",
    "How can I abort a run?": "questions#how-do-i-stop-a-run",
    "revert files": "chat#undo",
  };
  const missed = Object.entries(wanted).flatMap(([query, place]) => {
    const places = found(query);
    return places.slice(0, 3).includes(place) ? [] : [`${query}: ${places.slice(0, 5).join(", ")}`];
  });
  assertEquals(missed, []);
});

Deno.test("search() wants every word, takes them as they are, and returns at most the limit", () => {
  assertEquals(found(""), []);
  assertEquals(found("  "), []);
  assertEquals(found("undo qqqq"), []);
  assert(found("undo chat").length > 0);
  for (const query of ["(", "[a-z", "\\", "${VAR", "a*b+", "^$.|?"]) {
    assert(Array.isArray(found(query)), query);
  }
  assertEquals(search(INDEX, "e", 5).length, 5);
});

Deno.test("search() marks no words of one or two letters beside longer ones", () => {
  const section = { page: "plan", title: "Plan", heading: "A plan", anchor: "a", text: "what a plan may" };
  const marked = (query: string) =>
    search([section], query)[0]!.excerpt.filter(({ match }) => match).map(({ text }) => text);
  assertEquals(marked("what a plan"), ["what", "plan"]);
  assertEquals(marked("w"), ["w"]);
});

Deno.test("search() marks the matches of the heading and of an excerpt around the first one", () => {
  const text = `${"before ".repeat(40)}the Needle in the hay${" after".repeat(60)}`;
  const [result] = search(
    [{ page: "plan", title: "Plan", heading: "A needle", anchor: "a", text }],
    "needle",
  );
  assert(result);
  assertEquals(result.heading, [{ text: "A ", match: false }, { text: "needle", match: true }]);
  const excerpt = result.excerpt.map(({ text }) => text).join("");
  assert(/^… before .*the Needle in the hay after.* after …$/.test(excerpt), excerpt);
  assert(excerpt.length < 180);
  assertEquals(result.excerpt.filter(({ match }) => match).map(({ text }) => text), ["Needle"]);
});
