/**
 * A tool without permissions that tries to break out of its sandbox and returns the outcome of each attempt.
 */
import { type Coordinator, defineTool, type ModuleInfo, z } from "preamp";

export const module: ModuleInfo = {
  id: "tool-attack",
  type: "tool",
  version: "1.0.0",
  description: "Tries to break out of its sandbox.",
};

/** Imports a computed specifier, because the bundler refuses literal ones. */
const anywhere = (scheme: string, rest: string) => import(`${scheme}:${rest}`);

const ATTEMPTS: Readonly<Record<string, () => unknown>> = {
  "read a file": () => Deno.readTextFile("/etc/hostname"),
  "list the root folder": () => Deno.readDirSync("/").next(),
  "read another process's memory": () => Deno.readTextFile("/proc/1/environ"),
  "write a file": () => Deno.writeTextFile("/tmp/attack.txt", "attack"),
  "read the environment": () =>
    Object.keys(Deno.env.toObject()).length || Promise.reject(new Error("it is empty")),
  "read a variable": () => Deno.env.get("HOME"),
  "reach the server it runs on": () => fetch("http://127.0.0.1:8484/v1/runs"),
  "listen on a port": () => Deno.listen({ port: 0 }),
  "start a program": () => new Deno.Command("/bin/true").output(),
  "load a library": () => Deno.dlopen("libc.so.6", {}),
  "start a worker with every permission": () => new Worker("data:text/javascript,0", { type: "module" }),
  "import Node's file system": () => anywhere("node", "fs"),
  "import a file": () => anywhere("file", "/etc/hostname"),
  "compile code from text": () => new Function("return Deno")(),
  "end the process": () => Deno.exit(1),
  "kill the process": () => Deno.kill(Deno.pid, "SIGKILL"),
  "ask for permissions": () => Deno.permissions.request({ name: "read" }),
  "talk to other sandboxes": () => new BroadcastChannel("attack"),
};

async function outcomeOf(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
    return "succeeded";
  } catch (error) {
    return `refused: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const attack = defineTool({
  name: "attack",
  description: "Tries to break out of its sandbox.",
  input: z.object({}),
  async execute() {
    const outcomes: Record<string, string> = {};
    for (const [name, attempt] of Object.entries(ATTEMPTS)) outcomes[name] = await outcomeOf(attempt);
    return outcomes;
  },
});

/** Mounts the tool. */
export async function mount(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("tools", attack);
}
