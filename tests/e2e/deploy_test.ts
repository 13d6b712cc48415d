/** The recipes of src/docs/deploy.md, as far as this machine can try them. */
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { ROOT, startServer } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

const PAGE = await Deno.readTextFile(`${ROOT}src/docs/deploy.md`);

/** Returns the first block of code in a language. */
function block(language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(PAGE) ?? [];
  assert(text !== undefined, `${language} is not on the page`);
  return text;
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

const decoder = new TextDecoder();

Deno.test({
  name: "the systemd unit is valid",
  ignore: !isThere("/usr/bin/systemd-analyze"),
  async fn() {
    await using temporary = await temporaryFolder();
    const folder = temporary.path;
    const unit = block("ini").replace("/usr/local/bin/preamp", "/bin/true");
    await Deno.writeTextFile(`${folder}/preamp.service`, unit);
    const { code, stderr } = await new Deno.Command("/usr/bin/systemd-analyze", {
      args: ["verify", "--man=no", "--recursive-errors=no", `${folder}/preamp.service`],
    }).output();
    const own = decoder.decode(stderr).split("\n").filter((line) => line.includes("preamp.service"));
    assertEquals([code, own], [0, []]);
  },
});

Deno.test("the health check of the container succeeds for a server that is ready, and fails without one", async () => {
  const [, json = "[]"] = /HEALTHCHECK .* CMD (\[.*\])/.exec(block("dockerfile")) ?? [];
  const [command = "", ...args]: string[] = JSON.parse(json);
  const check = async (port: string) => {
    const env = { PORT: port };
    return (await new Deno.Command(command, { args, env, stdout: "null", stderr: "null" }).output()).code;
  };
  let port: string;
  {
    await using server = await startServer(["--host", "0.0.0.0"], { env: { PREAMP_API_KEYS: "a-key" } });
    port = new URL(server.url).port;
    assertEquals(await check(port), 0);
  }
  assertEquals(await check(port) === 0, false);
});

const BINARY = Deno.env.get("PROGRAM_UNDER_TEST");

/**
 * Returns whether this process is root's; `Deno.uid()` would need a permission that the tests do not have.
 */
function isRoot(): boolean {
  return decoder.decode(new Deno.Command("id", { args: ["-u"] }).outputSync().stdout).trim() === "0";
}

Deno.test({
  name: "the executable runs as another user on a read-only root, with a folder for its data",
  ignore: BINARY === undefined || Deno.build.os !== "linux" || !isRoot() ||
    !isThere("/usr/bin/unshare") ||
    !isThere("/usr/bin/setpriv"),
  async fn() {
    const data = await Deno.makeTempDir({ dir: "/var/tmp" });
    try {
      await Deno.chown(data, 10001, 10001);
      const binary = await Deno.realPath(BINARY!.startsWith("/") ? BINARY! : ROOT + BINARY);
      const script = `mount --bind "$2" "$2" && cp "$1" "$2/preamp" && chmod 755 "$2/preamp" &&
        mount -t tmpfs -o mode=1777 tmpfs /tmp && mount -o remount,bind,ro / && ! touch /etc/preamp-test 2>/dev/null &&
        cd "$2" && exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all \\
        env -i PREAMP_HOME="$2" PATH=/usr/bin:/bin "$2/preamp" "$\{@:3}"`;
      const run = (...words: string[]) =>
        new Deno.Command("/usr/bin/unshare", {
          args: ["--mount", "bash", "-c", script, "sh", binary, data, ...words],
        }).output();
      const doctor = await run("doctor", "--json");
      const report = JSON.parse(decoder.decode(doctor.stdout));
      assertEquals([report.store, report.isolation.process], [{ kind: "sqlite", ok: true }, true]);
      const ran = await run("run", "--session", "new", "What is 6 × 7?");
      assertEquals(ran.code, 0, decoder.decode(ran.stderr));
      assertStringIncludes(decoder.decode(ran.stderr), "ses_");
    } finally {
      await Deno.remove(data, { recursive: true });
    }
  },
});
