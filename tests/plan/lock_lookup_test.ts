import { lockFromData, LockLookup, normalUrl } from "../../src/plan/lock.ts";
import { parseSource } from "../../src/plan/source/source.ts";
import type { Source } from "../../src/sdk/plan.ts";
import { assertEquals } from "../assert.ts";

const INTEGRITY = `sha256-${"A".repeat(43)}=`;
const BASE = "file:///plans/plan.yaml";

function sourceOf(text: string, base_url = BASE): Source {
  const parsed = parseSource(text, { base_url });
  if (!("source" in parsed)) throw new Error(parsed.problem);
  return parsed.source;
}

function lookupOf(modules: string[], files: string[]): LockLookup {
  return LockLookup.of(
    lockFromData({
      version: 1,
      modules: Object.fromEntries(
        modules.map((source) => [source, { url: "https://h.test/", integrity: INTEGRITY }]),
      ),
      files: Object.fromEntries(files.map((url) => [url, { sha256: "0".repeat(64), bytes: 1 }])),
    }),
    BASE,
  );
}

/** Spellings of one URL, by the one in the lock. */
const SPELLINGS: Record<string, string[]> = {
  "https://h.test/a/mod.ts": [
    "https://h.test/a/mod.ts",
    "https://h.test/a/mod.ts#x",
    "https://h.test/a/mod.ts?",
    "https://h.test/a/mod.ts?#",
    "https://h.test/b/../a/./mod.ts",
    "https://h.test/b/%2e%2e/a/mod.ts",
    "https://H.TEST:443/a/mod.ts",
    "https://h.test./a/mod.ts",
    "https://h.test/a/%6Dod%2ets",
    "HTTPS://h.test/a/mo%64.ts",
  ],
  "https://h.test/a/mod (1).ts?v=1&w=ä": [
    "https://h.test/a/mod%20(1).ts?v=1&w=%c3%a4",
    "https://h.test/a/mod%20%281%29.ts?%76=%31&w=%C3%A4",
  ],
  "./tools/mod.ts": ["./tools/mod.ts", "./x/../tools/./mod.ts", "file:///plans/tools/mod.ts"],
  "npm:left-pad@1": ["npm:left-pad@1", "https://esm.sh/left-pad@1", "https://esm.sh/./left-pad@1#x"],
};

Deno.test("modulesOf() finds a module by every spelling of its URL", () => {
  for (const [locked, spellings] of Object.entries(SPELLINGS)) {
    if (locked.includes(" ")) continue; // a source must not contain a space
    const lookup = lookupOf([locked], []);
    for (const spelling of spellings) {
      const found = lookup.modulesOf(sourceOf(spelling)).map(({ integrity }) => integrity);
      assertEquals([spelling, found], [spelling, [INTEGRITY]]);
    }
  }
});

Deno.test("modulesOf() finds nothing for another URL", () => {
  const lookup = lookupOf(["https://h.test/a/mod.ts"], []);
  const others = [
    "https://h.test/a/mod.ts?x",
    "https://h.test/A/mod.ts",
    "https://h.test:444/a/mod.ts",
    "http://h.test/a/mod.ts",
    "https://h.test/a%2Fmod.ts",
    "https://x.h.test/a/mod.ts",
  ];
  for (const other of others) assertEquals([other, lookup.modulesOf(sourceOf(other))], [other, []]);
});

Deno.test("filesAt() finds a file under every spelling of its URL", () => {
  for (const [locked, spellings] of Object.entries(SPELLINGS)) {
    if (locked.startsWith("npm:")) continue;
    const lookup = lookupOf([], [locked]);
    for (const spelling of spellings) {
      const url = new URL(spelling, BASE).href;
      assertEquals([url, lookup.filesAt(url).length], [url, 1]);
    }
  }
});

Deno.test("normalUrl() keeps escapes of characters that separate parts", () => {
  assertEquals(
    [
      "https://h.test/a%2fb",
      "https://h.test/a%3Fb",
      "https://h.test/a%25b",
      "https://h.test/%ff",
      "https://h.test/?a=%26b",
      "data:text/javascript,1#x",
      "no URL",
    ].map(normalUrl),
    [
      "https://h.test/a%2Fb",
      "https://h.test/a%3Fb",
      "https://h.test/a%25b",
      "https://h.test/%FF",
      "https://h.test/?a=%26b",
      "data:text/javascript,1#x",
      "no URL",
    ],
  );
});
