/**
 * A Postgres server of these tests, from the packages of the system; it listens on loopback and keeps
 * nothing.
 */
import { freePort } from "./free_port.ts";

/** A running server. */
export interface Database extends AsyncDisposable {
  /** URL of its database. */
  readonly url: string;
  /** Its first process, until a restart; the others are children of it. */
  readonly pid: number;
  /** Stops the server, which ends all connections, and starts it again. */
  restart(): Promise<void>;
}

/** Folder of Postgres' programs; null where it is not installed. */
export const POSTGRES: string | null = findPrograms();

function findPrograms(): string | null {
  const root = "/usr/lib/postgresql"; // Debian and Ubuntu; other systems have the programs on the PATH
  try {
    const versions = [...Deno.readDirSync(root)].map(({ name }) => name).sort((a, b) =>
      Number(b) - Number(a)
    );
    return `${root}/${versions[0]}/bin`;
  } catch {
    const found = (Deno.env.get("PATH") ?? "").split(":").find((folder) => isFile(`${folder}/initdb`));
    return found ?? null;
  }
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** An empty cluster, which the servers of this isolate copy: making one takes 0.7 s of processor time. */
let template: Promise<string> | undefined;

async function makeTemplate(): Promise<string> {
  const folder = await sharedFolder();
  globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
  const settings = ["-A", "trust", "-U", "preamp", "--no-sync"];
  await run(folder, `${POSTGRES}/initdb`, "-D", `${folder}/data`, ...settings);
  return folder;
}

/** Creates a folder for files of any user. */
async function sharedFolder(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "preamp-postgres-" });
  await Deno.chmod(folder, 0o777);
  return folder;
}

/** Ports that are tried: another program may take one before the server has it. */
const PORTS = 5;

/**
 * Starts a server with an empty database. With `durable` it writes to the disk before it answers, as it does
 * by default elsewhere; tests do not need that.
 */
export async function startPostgres({ durable = false } = {}): Promise<Database> {
  const folder = await sharedFolder();
  await run(folder, "cp", "-R", `${await (template ??= makeTemplate())}/data`, folder);
  const control = (...args: string[]) => run(folder, `${POSTGRES}/pg_ctl`, "-D", `${folder}/data`, ...args);
  const settings = `-k ${folder} -c listen_addresses=127.0.0.1 -c fsync=${durable ? "on" : "off"}`;
  let port = freePort();
  for (let tries = 1;; tries++) {
    try {
      await control("-o", `-p ${port} ${settings}`, "-l", `${folder}/log`, "-w", "start");
      break;
    } catch (error) {
      const log = await Deno.readTextFile(`${folder}/log`);
      if (tries === PORTS || !log.includes("Address already in use")) throw new Error(log, { cause: error });
      port = freePort();
    }
  }
  const [pid] = (await Deno.readTextFile(`${folder}/data/postmaster.pid`)).split("\n");
  return {
    pid: Number(pid),
    url: `postgres://preamp@127.0.0.1:${port}/postgres`,
    restart: () => control("-m", "immediate", "-l", `${folder}/log`, "-w", "restart"),
    async [Symbol.asyncDispose]() {
      await control("-m", "immediate", "-w", "stop");
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/**
 * Runs a program on a folder of this process. Postgres refuses to run as root, so root runs it as `postgres`.
 */
async function run(folder: string, ...command: string[]): Promise<void> {
  const { uid } = await Deno.stat(folder); // of this process: Deno.uid() needs a permission of its own
  const [program, ...args] = uid === 0
    ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", ...command]
    : command;
  const { success, stderr } = await new Deno.Command(program!, {
    args,
    cwd: "/",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(`${command[0]} failed: ${new TextDecoder().decode(stderr)}`);
}
