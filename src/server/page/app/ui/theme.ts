/** The colours of the system. */

/** Whether the system asks for a dark page. */
export function isDark(): boolean {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
