import {
  addressProblem,
  isTrustedInline,
  matchesPrefix,
  mayClimb,
  namesHost,
  sourceProblem,
  sourceRules,
  type SourceUse,
} from "../../src/policy/source_rules.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import type { Origin } from "../../src/policy/policy.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";

function rules(origin: Origin, entry: string, modules: { allow?: string[]; private_hosts?: string[] } = {}) {
  const policy = defaultPolicy();
  Object.assign(policy.modules, modules);
  return sourceRules(origin, policy, new URL(entry));
}

function fact(
  url: string,
  options: Parameters<typeof rules>,
  use: SourceUse = { as: "entry" },
): string | undefined {
  return sourceProblem(new URL(url), use, rules(...options))?.fact;
}

const ENTRY = "https://modules.example.com/agents/mod.ts";
const ALLOWED = { allow: ["https://modules.example.com/agents/"] };
const IMPORT: SourceUse = { as: "import", from: new URL(ENTRY) };

Deno.test("sourceProblem() lets a caller load URLs below an allowed prefix only", () => {
  assertEquals(fact(ENTRY, ["caller", ENTRY, ALLOWED]), undefined);
  assertEquals(fact("https://modules.example.com/agents/a/b.ts?v=1", ["caller", ENTRY, ALLOWED]), undefined);
  for (
    const other of [
      "https://modules.example.com/other/mod.ts",
      "https://modules.example.com/agents-evil/mod.ts",
      "https://modules.example.com/agents/../other/mod.ts",
      "https://modules.example.com/agents/%2e%2e/other/mod.ts",
      "https://modules.example.com:8443/agents/mod.ts",
      "http://modules.example.com/agents/mod.ts",
      "https://modules.example.com.evil.test/agents/mod.ts",
      "https://evil.test/https://modules.example.com/agents/mod.ts",
    ]
  ) {
    assertMatch(fact(other, ["caller", other, ALLOWED]) ?? "allowed", /modules\.allow/);
    assertMatch(fact(other, ["caller", ENTRY, ALLOWED], IMPORT) ?? "allowed", /an import leads out/);
  }
});

Deno.test("sourceProblem() refuses a caller's path that a server may decode to another one", () => {
  for (
    const path of ["..%2fother/mod.ts", "a%5c..%5cb.ts", "%252e%252e/x.ts", "%25252e%25252e/x.ts", "a%00.ts"]
  ) {
    const url = `https://modules.example.com/agents/${path}`;
    assertMatch(fact(url, ["caller", url, ALLOWED]) ?? "allowed", /encoded slash/);
  }
});

Deno.test("sourceProblem() decides the scheme by the plan's origin", () => {
  assertEquals(fact("file:///srv/mod.ts", ["operator", "file:///srv/mod.ts"]), undefined);
  assertMatch(
    fact("file:///etc/passwd", ["caller", "file:///etc/passwd", { allow: ["file:///"] }])!,
    /may not name files/,
  );
  assertMatch(fact("file:///etc/passwd", ["operator", ENTRY], IMPORT)!, /only files may import files/);
  assertMatch(
    fact("file:///etc/passwd", ["operator", ENTRY], { as: "redirect", from: new URL(ENTRY) })!,
    /only files/,
  );
  const data: SourceUse = { as: "import", from: new URL("data:text/javascript,1") };
  assertMatch(fact("file:///etc/passwd", ["operator", "data:text/javascript,1"], data)!, /only files/);
  const file: SourceUse = { as: "import", from: new URL("file:///srv/mod.ts") };
  assertEquals(fact("file:///srv/lib.ts", ["operator", "file:///srv/mod.ts"], file), undefined);
  for (
    const scheme of [
      "ftp://h/x.ts",
      "blob:https://h/1",
      "javascript:1",
      "about:blank",
      "ws://h/",
      "node:fs",
      "npm:x",
    ]
  ) {
    assertMatch(fact(scheme, ["operator", scheme])!, /is not supported/);
  }
});

Deno.test("sourceProblem() allows inline code of a caller when the policy lists data:", () => {
  const data = "data:text/javascript,export%20const%20a=1";
  assertMatch(fact(data, ["caller", data, ALLOWED])!, /does not list "data:"/);
  assertEquals(fact(data, ["caller", data, { allow: ["data:"] }]), undefined);
  assertEquals(fact(data, ["operator", data]), undefined);
  assertEquals(fact(data, ["caller", ENTRY, ALLOWED], IMPORT), undefined);
  assertMatch(fact(data, ["operator", ENTRY], { as: "redirect", from: new URL(ENTRY) })!, /redirect/);
});

Deno.test("sourceProblem() refuses plain http except for loopback and named hosts", () => {
  assertMatch(
    fact("http://example.com/mod.ts", ["operator", "http://example.com/mod.ts"])!,
    /http: is for loopback/,
  );
  assertMatch(
    fact("http://10.0.0.5/mod.ts", ["operator", "http://10.0.0.5/mod.ts"])!,
    /http: is for loopback/,
  );
  assertEquals(fact("http://127.0.0.1:9000/mod.ts", ["operator", "http://127.0.0.1:9000/mod.ts"]), undefined);
  assertEquals(fact("http://localhost:9000/mod.ts", ["operator", "http://localhost:9000/mod.ts"]), undefined);
  const named = { private_hosts: ["10.0.0.5", "build.internal:8080"] };
  assertEquals(fact("http://10.0.0.5/mod.ts", ["operator", "http://10.0.0.5/mod.ts", named]), undefined);
  assertEquals(
    fact("http://build.internal:8080/m.ts", ["operator", "http://build.internal:8080/m.ts", named]),
    undefined,
  );
  assertMatch(
    fact("http://build.internal/m.ts", ["operator", "http://build.internal/m.ts", named])!,
    /http:/,
  );
  const down: SourceUse = { as: "redirect", from: new URL(ENTRY) };
  assertMatch(
    fact("http://127.0.0.1/mod.ts", ["operator", ENTRY, { private_hosts: ["127.0.0.1"] }], down)!,
    /https to http/,
  );
});

Deno.test("sourceProblem() requires the policy to name loopback in a caller's plan, and the plan in an operator's", () => {
  const url = "http://127.0.0.1:9000/mod.ts";
  const allow = ["http://127.0.0.1:9000/"];
  assertMatch(fact(url, ["caller", url, { allow }])!, /a loopback address/);
  assertEquals(fact(url, ["caller", url, { allow, private_hosts: ["127.0.0.1:9000"] }]), undefined);
  assertMatch(fact(url, ["operator", ENTRY], IMPORT)!, /a loopback address/);
  assertMatch(
    fact("http://127.0.0.1:9001/x.ts", ["operator", url], { as: "import", from: new URL(url) })!,
    /a loopback/,
  );
});

Deno.test("sourceProblem() refuses ports that neither plan nor policy names", () => {
  assertMatch(fact("https://example.com:6379/x.ts", ["operator", ENTRY], IMPORT)!, /port 6379/);
  assertEquals(
    fact("https://example.com:8443/x.ts", ["operator", "https://example.com:8443/mod.ts"], IMPORT),
    undefined,
  );
  assertEquals(fact("https://example.com/x.ts", ["operator", ENTRY], IMPORT), undefined);
});

Deno.test("sourceProblem() refuses credentials in a URL", () => {
  assertMatch(fact("https://user:secret@example.com/mod.ts", ["operator", ENTRY])!, /user name or password/);
});

Deno.test("addressProblem() refuses addresses that are not public unless plan or policy named the host", () => {
  const url = new URL(ENTRY);
  const caller = rules("caller", ENTRY, ALLOWED);
  for (
    const address of [
      "127.0.0.1",
      "::1",
      "10.1.2.3",
      "169.254.169.254",
      "100.64.0.1",
      "0.0.0.0",
      "::ffff:10.0.0.1",
      "nonsense",
    ]
  ) {
    assertMatch(addressProblem(url, address, caller)?.fact ?? "allowed", /its host has an? /);
    assertEquals(
      addressProblem(new URL("https://other.test/x.ts"), address, rules("operator", ENTRY)) === undefined,
      false,
    );
  }
  assertEquals(addressProblem(url, "93.184.216.34", caller), undefined);
  assertEquals(addressProblem(url, "10.1.2.3", rules("operator", ENTRY)), undefined);
  assertEquals(
    addressProblem(
      url,
      "10.1.2.3",
      rules("caller", ENTRY, { ...ALLOWED, private_hosts: ["modules.example.com"] }),
    ),
    undefined,
  );
  assertMatch(
    addressProblem(
      new URL("http://localhost/m.ts"),
      "93.184.216.34",
      rules("operator", "http://localhost/m.ts"),
    )!.fact,
    /http:/,
  );
});

Deno.test("addressProblem() refuses plain http to a public address, of a named host and of modules.esm_host too", () => {
  const policy = defaultPolicy();
  policy.modules.private_hosts = ["build.internal"];
  policy.modules.esm_host = "http://packages.internal:8080";
  for (const host of ["build.internal", "packages.internal:8080"]) {
    const use = (scheme: string, address: string) => {
      const url = new URL(`${scheme}://${host}/m.ts`);
      return addressProblem(url, address, sourceRules("operator", policy, url))?.fact;
    };
    assertMatch(use("http", "93.184.216.34")!, /a public address, which needs https:/);
    assertEquals([use("https", "93.184.216.34"), use("http", "10.1.2.3")], [undefined, undefined]);
  }
});

Deno.test("matchesPrefix() compares normalised URLs at slashes", () => {
  const yes = (url: string, prefix: string) => assertEquals(matchesPrefix(new URL(url), [prefix]), true);
  const no = (url: string, prefix: string) => assertEquals(matchesPrefix(new URL(url), [prefix]), false);
  yes("https://H.example/a/b.ts", "https://h.EXAMPLE:443/a");
  yes("https://h.example/a/b.ts", "https://h.example/");
  yes("https://h.example/a.ts", "https://h.example/a.ts");
  yes("https://xn--bcher-kva.example/a.ts", "https://bücher.example/");
  no("https://h.example/ab.ts", "https://h.example/a");
  no("https://h.example./a/b.ts", "https://h.example/a/");
  no("data:text/javascript,1", "https://h.example/");
});

Deno.test("mayClimb() is false for ordinary paths", () => {
  for (
    const path of [
      "/a/b.ts",
      "/@scope/pkg@1.2.3/mod.ts",
      "/a%20b.ts",
      "/%E2%82%AC.ts",
      "/a..b.ts",
      "/100%25.ts",
    ]
  ) {
    assertEquals(mayClimb(path), false, path);
  }
});

Deno.test("namesHost() compares hosts in any spelling, and the port when the entry has one", () => {
  const names = (url: string, entry: string) => namesHost(new URL(url), [entry]);
  assertEquals(names("http://127.0.0.1:9000/", "127.0.0.1:9000"), true);
  assertEquals(names("http://127.0.0.1:9001/", "127.0.0.1:9000"), false);
  assertEquals(names("http://127.0.0.1:9001/", "127.0.0.1"), true);
  assertEquals(names("http://0x7f.1:80/", "127.0.0.1:80"), true);
  assertEquals(names("http://127.0.0.1:9000/", "127.0.0.1:80"), false);
  assertEquals(names("https://[::1]/", "[::1]:443"), true);
  assertEquals(names("https://[::1]:1/", "[::1]"), true);
  assertEquals(names("http://build.internal./", "build.internal"), true);
});

Deno.test("isTrustedInline() is false for a path that may be decoded to another folder", () => {
  const policy = defaultPolicy();
  policy.modules.inline = ["file:///srv/vendor/", "https://modules.example.com/agents/"];
  for (
    const url of [
      "file:///srv/vendor/..%2fdownloads/mod.ts",
      "https://modules.example.com/agents/..%5cother/mod.ts",
      "https://modules.example.com/agents/%252e%252e/mod.ts",
    ]
  ) {
    assertEquals(isTrustedInline(url, policy), false, url);
  }
});

Deno.test("isTrustedInline() is true below modules.inline only", () => {
  const policy = defaultPolicy();
  policy.modules.inline = ["https://own.example/modules/"];
  assertEquals(isTrustedInline("https://own.example/modules/a.ts", policy), true);
  assertEquals(isTrustedInline("https://own.example/other/a.ts", policy), false);
  policy.modules.inline = ["file:///srv/one.ts"];
  const files = ["file:///srv/one.ts", "file:///srv/one.ts/two.ts"];
  assertEquals(files.map((url) => isTrustedInline(url, policy)), [true, false]);
});
