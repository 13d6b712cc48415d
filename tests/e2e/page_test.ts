/** The page ships with the program: from source and compiled. Its behaviour is tested in tests/browser. */
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { startServer } from "./program.ts";

const BROWSER = { headers: { accept: "text/html" } };

Deno.test("serve answers the page and its files at /, and not with --page false", async () => {
  await using server = await startServer();
  const page = await (await fetch(server.url, BROWSER)).text();
  const [, style, script] = /href="(page\/.*?css)"[^]* src="(page\/.*?js)"/.exec(page) ?? [];
  for (const [path, text] of [[style, "#app"], [script, "/v1/runs"]] as const) {
    assertStringIncludes(await (await fetch(`${server.url}/${path}`)).text(), text, path);
  }
  await using without = await startServer(["--page", "false"]);
  assertEquals((await (await fetch(without.url, BROWSER)).text()).includes('src="page/'), false);
  const file = await fetch(`${without.url}/${script}`);
  assertEquals([file.status, (await file.json()).error.code], [404, "not_found"]);
  assertEquals(without.stdout.text.includes("in a browser"), false);
});
