import { isHosted } from "../../src/cli/terminal/io.ts";
import { hostedStore } from "../../src/cli/deno_serve.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const envOf = (variables: Record<string, string>) => ({ env: (name: string) => variables[name] });

Deno.test("isHosted() is decided by the variables of the host", () => {
  assertEquals(
    [{}, { DENO_AUTO_SERVE: "" }, { DENO_AUTO_SERVE: "1" }, { DENO_DEPLOY: "1" }].map((one) =>
      isHosted(envOf(one))
    ),
    [false, false, true, true],
  );
});

Deno.test("hostedStore() is what store names, DATABASE_URL, an attached Deno KV, or memory", async () => {
  const url = "postgres://ada:x@db.example/app";
  const kv = { DENO_KV_DEFAULT_PATH: "https://kv.example" };
  assertEquals([
    hostedStore({ store: "memory" }, envOf({ DATABASE_URL: url })),
    hostedStore({ store: "auto" }, envOf({ DATABASE_URL: url, ...kv })),
    hostedStore({ store: "auto" }, envOf(kv)),
    hostedStore({ store: "auto" }, envOf({})),
  ], ["memory", { kind: "postgres", url }, { kind: "kv", path: null }, "memory"]);
  await assertRejects(
    async () => void await hostedStore({ store: "auto" }, envOf({ DATABASE_URL: "mysql://ada:x@h/d" })),
    Error,
    "Cannot use DATABASE_URL: must be postgres://USER:PASSWORD@HOST/DATABASE",
  );
});
