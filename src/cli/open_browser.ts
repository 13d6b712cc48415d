/** Opens an address in the browser of the person at this machine. */
import { escapeHtml } from "../text/escape.ts";
import type { Io } from "./terminal/io.ts";

/**
 * Opens an address. It may have a key, so it is not an argument of the browser, which other users of the
 * machine could read: the browser is given a file that only this user may read, and that leads on.
 *
 * @param home `$PREAMP_HOME`, where the file is written.
 * @returns A function that removes the file.
 * @throws {Error} when no browser can be started.
 */
export async function openBrowser(
  address: string,
  home: URL,
  { env }: Pick<Io, "env">,
): Promise<() => Promise<void>> {
  const file = new URL(`open-${crypto.randomUUID()}.html`, home);
  const remove = () => Deno.remove(file).catch(() => {}); // it was removed
  await Deno.mkdir(home, { recursive: true });
  const link = escapeHtml(address);
  await Deno.writeTextFile(
    file,
    `<!doctype html><meta http-equiv="refresh" content="0; url=${link}"><a href="${link}">Preamp</a>\n`,
    { createNew: true, mode: 0o600 },
  );
  const [command = "", ...args] = opener(env);
  try {
    const { code } = await new Deno.Command(command, {
      args: [...args, file.href],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    if (code !== 0) throw new Error(`${command} has ended with code ${code}`);
  } catch (error) {
    await remove();
    throw error;
  }
  return remove;
}

/** Returns the command that opens a page: `$BROWSER`, else that of the system. */
function opener(env: Io["env"]): string[] {
  const named = env("BROWSER");
  if (named) return [named];
  if (Deno.build.os === "darwin") return ["open"];
  return Deno.build.os === "windows" ? ["explorer"] : ["xdg-open"];
}
