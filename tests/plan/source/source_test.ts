import { formatPath } from "../../../src/sdk/value_path.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { parseSource } from "../../../src/plan/source/source.ts";
import { checkPlan } from "../../../src/plan/check/check.ts";
import { GOOD } from "../../support/plans.ts";

const BASE = "file:///srv/plans/support.yaml";

/** Returns the source without the original, or the problem. */
function read(
  value: unknown,
  options: { base_url?: string; esm_host?: string } = { base_url: BASE },
): unknown {
  const result = parseSource(value, options);
  if ("problem" in result) return result.problem;
  const { original: _, ...source } = result.source as { original?: string };
  return source;
}

function urlOf(value: unknown, options?: { base_url?: string; esm_host?: string }): string {
  const result = parseSource(value, options ?? { base_url: BASE });
  assert("source" in result && result.source.kind === "url", JSON.stringify(result));
  return result.source.url;
}

Deno.test("parseSource() reads git+https with ref and subdirectory into its fields", () => {
  assertEquals(read("git+https://github.com/org/repo@v1.2#subdirectory=modules/tool-x"), {
    kind: "url",
    url: "https://raw.githubusercontent.com/org/repo/v1.2/modules/tool-x/mod.ts",
    via: "git",
    git: { repository: "https://github.com/org/repo", ref: "v1.2", subdirectory: "modules/tool-x" },
    folder: true,
  });
});

const SHA = "0123456789abcdef0123456789abcdef01234567";
const GIT: Record<string, string> = {
  "git+https://github.com/org/repo": "https://raw.githubusercontent.com/org/repo/HEAD/mod.ts",
  "git+https://github.com/org/repo.git@main": "https://raw.githubusercontent.com/org/repo/main/mod.ts",
  "git+https://github.com/org/repo@feature/x": "https://raw.githubusercontent.com/org/repo/feature/x/mod.ts",
  "git+https://github.com/org/repo@v1#subdirectory=a/b.ts":
    "https://raw.githubusercontent.com/org/repo/v1/a/b.ts",
  "git+https://gitlab.com/group/sub/repo@v1#subdirectory=a":
    "https://gitlab.com/group/sub/repo/-/raw/v1/a/mod.ts",
  "git+https://gitlab.example.org/g/repo": "https://gitlab.example.org/g/repo/-/raw/HEAD/mod.ts",
  "git+https://bitbucket.org/team/repo@main": "https://bitbucket.org/team/repo/raw/main/mod.ts",
  "git+https://codeberg.org/me/repo": "https://codeberg.org/me/repo/raw/branch/HEAD/mod.ts",
  "git+https://codeberg.org/me/repo@main": "https://codeberg.org/me/repo/raw/branch/main/mod.ts",
  "git+https://codeberg.org/me/repo@v1.0.2": "https://codeberg.org/me/repo/raw/tag/v1.0.2/mod.ts",
  [`git+https://gitea.example.org/me/repo@${SHA}`]:
    `https://gitea.example.org/me/repo/raw/commit/${SHA}/mod.ts`,
  "git+https://codeberg.org/me/repo@refs/tags/x": "https://codeberg.org/me/repo/raw/tag/x/mod.ts",
};
for (const [source, url] of Object.entries(GIT)) {
  Deno.test(`parseSource() rewrites ${source} to a raw file`, () => {
    assertEquals(urlOf(source), url);
  });
}

Deno.test("parseSource() reads the dictionary forms", () => {
  const git = { type: "git", url: "https://github.com/org/repo", ref: "v1", subdirectory: "a" };
  assertEquals(urlOf(git), "https://raw.githubusercontent.com/org/repo/v1/a/mod.ts");
  assertEquals(
    urlOf({ type: "git", url: "git+https://gitlab.com/o/r" }),
    "https://gitlab.com/o/r/-/raw/HEAD/mod.ts",
  );
  assertEquals(urlOf({ type: "file", path: "../x.ts" }), "file:///srv/x.ts");
  assertEquals(urlOf({ type: "file", path: "tools/x" }), "file:///srv/plans/tools/x/mod.ts");
  assertEquals(urlOf({ type: "url", url: "https://example.com/x.ts" }), "https://example.com/x.ts");
});

const URLS: Record<string, string> = {
  "https://example.com/x.ts": "https://example.com/x.ts",
  "https://example.com/x": "https://example.com/x",
  "https://EXAMPLE.com/a/": "https://example.com/a/mod.ts",
  "https://example.com/x.ts?v=1#frag": "https://example.com/x.ts?v=1",
  "http://127.0.0.1:9000/x.ts": "http://127.0.0.1:9000/x.ts",
  "file:///abs/mod.ts": "file:///abs/mod.ts",
  "file:///abs/tool-x": "file:///abs/tool-x/mod.ts",
  "/abs/tool.ts": "file:///abs/tool.ts",
  "./rel": "file:///srv/plans/rel/mod.ts",
  "./rel/tool.ts": "file:///srv/plans/rel/tool.ts",
  "../x/": "file:///srv/x/mod.ts",
  "./tool-v1.2": "file:///srv/plans/tool-v1.2/mod.ts",
  "./a b#c?d%20.ts": "file:///srv/plans/a%20b%23c%3Fd%2520.ts",
  "C:\\modules\\tool.ts": "file:///C:/modules/tool.ts",
  "data:text/javascript,export%20const%20x=1": "data:text/javascript,export%20const%20x=1",
  "npm:left-pad@1": "https://esm.sh/left-pad@1",
  "npm:@scope/name@1.2.3/file.js": "https://esm.sh/@scope/name@1.2.3/file.js",
  "jsr:@std/encoding@1": "https://esm.sh/jsr/@std/encoding@1",
};
for (const [source, url] of Object.entries(URLS)) {
  Deno.test(`parseSource() reads ${source}`, () => assertEquals(urlOf(source), url));
}

Deno.test("parseSource() maps registries to the operator's CDN", () => {
  assertEquals(urlOf("npm:a@1", { esm_host: "https://cdn.example/esm/" }), "https://cdn.example/esm/a@1");
});

Deno.test("parseSource() keeps a relative path of a plan without a file for the policy to refuse", () => {
  assertEquals(read("./x", {}), { kind: "path", path: "./x/mod.ts" });
});

Deno.test("parseSource() without a source means a built-in module", () => {
  assertEquals(read(undefined), { kind: "builtin" });
});

const REFUSED: Record<string, unknown> = {
  "an archive": "zip+https://example.com/a.zip",
  "a local archive": "zip+file:///a.zip",
  "git over ssh": "git+ssh://git@github.com/org/repo@main",
  "a package": "some-package",
  "a package by dictionary": { type: "package", name: "some-package" },
  "an unknown scheme": "ftp://example.com/x.ts",
  "code by scheme": "javascript:alert(1)",
  "nothing": "",
  "a broken URL": "https://",
  "a URL without slashes": "https:example.com/x.ts",
  "a user and password": "https://user:secret@example.com/x.ts",
  "a git user": "git+https://user:secret@github.com/org/repo",
  "a git host we do not know": "git+https://git.example.com/org/repo",
  "a git URL without a repository": "git+https://github.com/org",
  "a git URL with too many parts": "git+https://github.com/org/repo/tree",
  "a subdirectory that leaves the repository": "git+https://github.com/org/repo#subdirectory=../x",
  "a fragment we do not know": "git+https://github.com/org/repo#egg=x",
  "a ref with spaces": "git+https://github.com/org/repo@a%20b",
  "a ref that climbs": "git+https://github.com/org/repo@a/../../x",
  "shell text": "file://$(pwd)/x",
  "a space": "https://example.com/a b.ts",
  "a line break": "https://example.com/a\nb.ts",
  "a file URL with a host": "file://host/x.ts",
  "an npm path that climbs": "npm:a/../b",
  "a JSR package without a scope": "jsr:a@1",
  "an npm package without a name": "npm:@1",
  "a dictionary of an unknown type": { type: "svn", url: "x" },
  "a git dictionary without https": { type: "git", url: "ssh://git@github.com/o/r" },
  "a number": 7,
  "a list": ["https://example.com/x.ts"],
};
for (const [what, source] of Object.entries(REFUSED)) {
  Deno.test(`parseSource() refuses ${what} and suggests what to write`, () => {
    const result = parseSource(source, { base_url: BASE });
    assert("problem" in result, JSON.stringify(result));
    assert(result.hint.length > 0);
    assertEquals(JSON.stringify(result).includes("secret"), false);
  });
}

Deno.test("checkPlan() lists the supported forms when a source is invalid", () => {
  for (const source of ["zip+https://example.com/a.zip", "git+ssh://git@github.com/o/r", "some-package"]) {
    const { findings } = checkPlan({ ...GOOD, tools: [{ module: "a", source }] });
    assertEquals(findings.errors.map(({ path, code }) => [formatPath(path), code]), [
      ["tools[0].source", "source_invalid"],
    ]);
    assertMatch(findings.errors[0]?.hint ?? "", /https:\/\/.*file:.*data:.*npm:.*jsr:.*git\+https:/);
  }
});

const PAGES: Record<string, string> = {
  "github.com/org/repo": "git+https://github.com/org/repo",
  "GitHub.com/org/repo.git": "git+https://GitHub.com/org/repo",
  "https://github.com/org/repo/": "git+https://github.com/org/repo",
  "https://github.com/org/repo?tab=readme": "git+https://github.com/org/repo",
  "https://github.com/org/repo/tree/main": "git+https://github.com/org/repo@main",
  "github.com/org/repo/blob/v1/a/mod.ts": "git+https://github.com/org/repo@v1#subdirectory=a/mod.ts",
  "github.com/org/repo/tools/x/mod.ts": "git+https://github.com/org/repo#subdirectory=tools/x/mod.ts",
  "git@github.com:org/repo.git": "git+https://github.com/org/repo",
  "gitlab.com/group/sub/repo": "git+https://gitlab.com/group/sub/repo",
  "https://gitlab.com/g/s/repo/-/tree/main/tools/x":
    "git+https://gitlab.com/g/s/repo@main#subdirectory=tools/x",
  "https://bitbucket.org/team/repo/src/main/x.ts":
    "git+https://bitbucket.org/team/repo@main#subdirectory=x.ts",
  "https://codeberg.org/me/repo/src/branch/main/x": "git+https://codeberg.org/me/repo@main#subdirectory=x",
};
for (const [page, source] of Object.entries(PAGES)) {
  Deno.test(`parseSource() suggests the source of ${page}`, () => {
    const parsed = parseSource(page, { base_url: BASE });
    assertEquals("problem" in parsed && parsed.hint, `write "${source}"`);
    urlOf(source);
  });
}

Deno.test("parseSource() takes files of hosts of repositories, and suggests https:// for other addresses", () => {
  for (
    const url of [
      "https://github.com/org/repo/raw/main/mod.ts",
      "https://github.com/org/repo/releases/download/v1/mod.js",
      "https://gitlab.com/g/repo/-/raw/main/mod.ts",
      "https://gitlab.com/g/repo/raw/main/mod.ts",
      "https://codeberg.org/me/repo/raw/branch/main/mod.ts",
      "https://raw.githubusercontent.com/org/repo/main/mod.ts",
    ]
  ) assertEquals(urlOf(url), url);
  const parsed = parseSource("example.com/x.ts", { base_url: BASE });
  assertEquals(
    "problem" in parsed && parsed.hint,
    'write "https://example.com/x.ts", or "./example.com/x.ts" for a path',
  );
});

Deno.test("parseSource() suggests ./ for a path without it", () => {
  const hintOf = (text: string) => {
    const parsed = parseSource(text, { base_url: BASE });
    return "problem" in parsed ? parsed.hint : "";
  };
  assertEquals(hintOf("shout.ts"), 'did you mean "./shout.ts"?');
  assertEquals(hintOf("tools/shout"), 'did you mean "./tools/shout"?');
  assertEquals(hintOf("mod.ts/x"), 'did you mean "./mod.ts/x"?');
  assertEquals(hintOf("~/x.ts"), "write the absolute path");
  assertMatch(hintOf("amplifier-module-x"), /^use the URL of an ES module/);
});
