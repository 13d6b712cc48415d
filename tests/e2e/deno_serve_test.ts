/** `deno serve main.ts` and `deno run main.ts`: the module without a command line. Always from source. */
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { ROOT, Tail } from "./program.ts";

const PERMISSIONS = ["--no-prompt", "--allow-net", "--allow-read", "--allow-env"];

async function withServed(env: Record<string, string>, test: (url: string) => Promise<void>): Promise<void> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["serve", ...PERMISSIONS, "--host", "127.0.0.1", "--port", "0", `${ROOT}main.ts`],
    env: { ...env, NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stdout = new Tail(child.stdout);
  const stderr = new Tail(child.stderr);
  try {
    const told = await Promise.race(
      [stdout, stderr].map((tail) => tail.until((text) => text.includes("Listening on http"))),
    );
    await test(/http:\/\/[\d.:]+/.exec(told)?.[0] ?? "");
  } finally {
    child.kill("SIGTERM");
    await Promise.all([child.status, stdout.closed, stderr.closed]);
  }
}

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
}

Deno.test("deno serve main.ts answers open routes alone when no keys are configured", async () => {
  await withServed({}, async (url) => {
    assertEquals(await statusOf(`${url}/healthz`), 200);
    assertEquals(await statusOf(`${url}/v1/runs`), 401);
    assertEquals(await statusOf(`${url}/v1/runs`, { authorization: "Bearer " }), 401);
  });
});

Deno.test("deno serve main.ts takes the keys of PREAMP_API_KEYS", async () => {
  await withServed({ PREAMP_API_KEYS: "a-key" }, async (url) => {
    assertEquals(await statusOf(`${url}/v1/runs`, { authorization: "Bearer a-key" }), 200);
    assertEquals(await statusOf(`${url}/v1/runs`, { authorization: "Bearer another" }), 401);
  });
});

Deno.test("deno run main.ts serve ends with what is missing when it may not read the rest of itself", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-net", "--allow-env", `--allow-read=${folder}`, `${ROOT}main.ts`]
        .concat("serve", "--port", "0"),
      cwd: folder,
    }).output();
    assertEquals(code, 1);
    assertStringIncludes(new TextDecoder().decode(stdout), "http://127.0.0.1:");
    assertStringIncludes(
      new TextDecoder().decode(stderr),
      "Cannot serve: the program could not be loaded: Requires read",
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("deno run main.ts without arguments prints the usage and exits 2", async () => {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...PERMISSIONS, `${ROOT}main.ts`],
  }).output();
  assertEquals(code, 2);
  assertStringIncludes(new TextDecoder().decode(stderr), "Usage: preamp");
});
