/** What a `.env` of the working directory may set. */
import { loadEnvFile } from "../../src/cli/env_file.ts";
import { assertEquals } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

Deno.test("a .env sends no key of the shell to another address, and may name the address of its own keys", async () => {
  await using folder = await temporaryFolder();
  const before = Deno.env.toObject();
  const lines = [
    ...["TESTVENDOR_BASE_URL", "GOOGLE_TESTVENDOR_BASE_URL", "OTHERVENDOR_ENDPOINT"].map((name) =>
      `${name}=https://elsewhere.example`
    ),
    "OTHERVENDOR_API_KEY=own",
  ];
  await Deno.writeTextFile(`${folder.path}/.env`, lines.join("\n"));
  try {
    Deno.env.set("TESTVENDOR_API_KEY", "of the person");
    const warnings = await loadEnvFile({ cwd: new URL(`file://${folder.path}/`) });
    assertEquals(
      warnings,
      ["GOOGLE_TESTVENDOR_BASE_URL", "TESTVENDOR_BASE_URL"].map((name) =>
        `The variable ${name} of .env is ignored: set it in the shell`
      ),
    );
    assertEquals(Deno.env.get("TESTVENDOR_BASE_URL"), undefined);
    assertEquals(Deno.env.get("OTHERVENDOR_ENDPOINT"), "https://elsewhere.example");
  } finally {
    for (const name of Object.keys(Deno.env.toObject())) if (!(name in before)) Deno.env.delete(name);
  }
});
