/**
 * Targets that hostile modules may and must not reach: folders, a secret, counting listeners, a unix socket.
 * Created again for a suite, and asked afterwards whether anything of it was touched.
 */
import type { EscapeKind, Grant } from "./escape_kinds.ts";

/** The world around an attack. */
export interface EscapeSite extends AsyncDisposable {
  /** Folder of everything below. */
  readonly root: string;
  /** May be read, when that is granted; has `inside.txt` and links that lead out. */
  readonly folder: string;
  /** May be written, when that is granted; the server's folder for temporary files. */
  readonly writable: string;
  /** Where the server is started. */
  readonly scratch: string;
  /** The server's `$PREAMP_HOME`. */
  readonly home: string;
  /** Never granted. */
  readonly secret_file: string;
  /** What stands in it, and in the variable. */
  readonly secret: string;
  readonly secret_env: string;
  /** Listeners: one that may be granted, one that may not. */
  readonly open_url: string;
  readonly closed_url: string;
  readonly closed_socket: string;
  /** Connections to listeners that are not granted. */
  readonly trespasses: readonly string[];
  /** Returns changes of protected files as lines; empty without changes. */
  changes(): Promise<string[]>;
}

/** Variable of the server's environment that no plan expands. */
const SECRET_ENV = "ESCAPE_SECRET";

/** Makes a site. Dispose of it: it listens. */
export async function openEscapeSite(): Promise<EscapeSite> {
  const root = await Deno.makeTempDir({ prefix: "escape-" });
  const at = (name: string) => `${root}/${name}`;
  for (const name of ["granted", "granted-sibling", "outside", "writable", "scratch", "home", "plans"]) {
    await Deno.mkdir(at(name));
  }
  const secret = `SECRET-${crypto.randomUUID()}`;
  const secret_file = at("outside/secret.txt");
  await Deno.writeTextFile(secret_file, secret);
  await Deno.writeTextFile(at("granted-sibling/secret.txt"), secret);
  await Deno.writeTextFile(at("outside/secret_module.js"), "export default 'loaded';\n");
  await Deno.writeTextFile(at("granted/inside.txt"), "You may read this.");
  await Deno.symlink(secret_file, at("granted/link_to_file"));
  await Deno.symlink(at("outside"), at("granted/link_to_folder"));
  await Deno.symlink(at("granted/link_to_file"), at("granted/link_to_link"));
  const canaries = await startCanaries(at("closed.sock"), secret_file);
  const before = await snapshot(root);
  return {
    root,
    folder: at("granted"),
    writable: at("writable"),
    scratch: at("scratch"),
    home: at("home"),
    secret_file,
    secret,
    secret_env: SECRET_ENV,
    open_url: canaries.open_url,
    closed_url: canaries.closed_url,
    closed_socket: at("closed.sock"),
    trespasses: canaries.trespasses,
    async changes() {
      const after = await snapshot(root);
      const names = new Set([...before.keys(), ...after.keys()]);
      return [...names].filter((name) => before.get(name) !== after.get(name)).map((name) =>
        `${name}: ${before.get(name) ?? "absent"} → ${after.get(name) ?? "absent"}`
      );
    },
    async [Symbol.asyncDispose]() {
      await canaries.stop();
      await Deno.remove(root, { recursive: true });
    },
  };
}

/** The attacker's `config`: addresses and paths of the site. */
export function targetOf(
  site: EscapeSite,
  kind: Pick<EscapeKind, "name" | "seen">,
  server_pid = Deno.pid,
): Record<string, unknown> {
  return {
    kind: kind.name,
    folder: site.folder,
    secret_file: site.secret_file,
    secret_env: site.secret_env,
    closed_folders: [`${site.root}/outside`, `${site.root}/plans`, site.root],
    writable: site.writable,
    open_url: site.open_url,
    closed_url: site.closed_url,
    closed_socket: site.closed_socket,
    patience_ms: "doors" in kind.seen && kind.seen.doors === "open" ? 20_000 : 300,
    server_pid,
  };
}

/** The `permissions` of a plan for a grant. */
export function permissionsOf(site: EscapeSite, grant: Grant): Record<string, string[]> {
  const read = { read: [site.folder] };
  const net = { net: [new URL(site.open_url).host] };
  switch (grant) {
    case "nothing":
      return {};
    case "folder":
      return read;
    case "open host":
      return net;
    case "folder and open host":
      return { ...read, ...net };
    case "writable":
      return { read: [site.writable], write: [site.writable] };
  }
}

interface Canaries {
  readonly open_url: string;
  readonly closed_url: string;
  readonly trespasses: string[];
  stop(): Promise<void>;
}

/** Starts the listeners (canaries.ts) and follows what they say. */
async function startCanaries(socket: string, secret_file: string): Promise<Canaries> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "--allow-net",
      `--allow-read=${socket}`,
      `--allow-write=${socket}`,
      new URL("canaries.ts", import.meta.url).pathname,
      socket,
      secret_file,
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines = linesOf(child.stdout);
  const { value: first } = await lines.next();
  if (typeof first !== "string") throw new Error("Cannot start the canaries: they ended at once");
  const trespasses: string[] = [];
  const reading = (async () => {
    for await (const line of lines) trespasses.push(line);
  })();
  return {
    ...JSON.parse(first) as { open_url: string; closed_url: string },
    trespasses,
    async stop() {
      await child.stdin.close();
      await Promise.all([child.status, reading]);
    },
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let text = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (text + part).split("\n");
    text = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}

/** Name → size, mode and content of protected files: all but those in writable folders. */
async function snapshot(root: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of ["", "granted", "granted-sibling", "outside", "plans", "scratch"]) {
    for await (const entry of Deno.readDir(`${root}/${name}`)) {
      const path = `${root}/${name}/${entry.name}`;
      const { mode, size, nlink } = await Deno.lstat(path);
      const text = entry.isFile
        ? await Deno.readTextFile(path)
        : entry.isSymlink
        ? await Deno.readLink(path)
        : "";
      found.set(
        `${name}/${entry.name}`,
        `${mode} ${entry.isFile ? size : 0} ${entry.isFile ? nlink : 0} ${text}`,
      );
    }
  }
  return found;
}
