// SPDX-License-Identifier: BSL-1.0
#include "cli/reference.hpp"

#include <string_view>
#include <vector>

#include <holdfast/version.hpp>

#include "cli/exit_status.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {
namespace {

/// For troff: a backslash, a dash and a dot at the begin of a line have a meaning there.
std::string troff(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '\\')
      out += "\\e";
    else if (byte == '-')
      out += "\\-";
    else if (byte == '\n')
      out += "\n.br\n";
    else
      out += byte;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& byte : out)
    if (byte >= 'a' && byte <= 'z') byte -= 'a' - 'A';
  return out;
}

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// "-w,--wait SEC", or the name of an argument.
std::string title_of(const CLI::Option& option) {
  const bool takes_value = option.get_items_expected_max() > 0 && !option.get_type_name().empty();
  if (option.get_positional()) return option.get_type_name();
  return option.get_name(false, true) + (takes_value ? ' ' + option.get_type_name() : "");
}

std::string section_of(const CLI::App& command) {
  std::string text = ".SS holdfast " + troff(command.get_name()) + '\n' + troff(command.get_description()) + ".\n";
  for (const auto* option : command.get_options())
    text += ".TP\n.B " + troff(title_of(*option)) + '\n' + troff(option->get_description()) + '\n';
  if (!command.get_footer().empty()) text += ".PP\n" + troff(command.get_footer()) + '\n';
  return text;
}

/// "--url --json …", and those of one letter.
std::string flags_of(const CLI::App& command) {
  std::string flags;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) flags += " --" + name;
    for (const auto& name : option->get_snames()) flags += " -" + name;
  }
  return flags.empty() ? flags : flags.substr(1);
}

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const auto* command : subcommands(app)) names += (names.empty() ? "" : " ") + command->get_name();
  return names;
}

/// The cases of a shell's `case`: the flags of each subcommand.
std::string cases(const CLI::App& app, const std::string& before, const std::string& after) {
  std::string text;
  for (const auto* command : subcommands(app))
    text += "    " + command->get_name() + ") " + before + flags_of(*command) + after + " ;;\n";
  return text;
}

std::string for_bash(const CLI::App& app) {
  return "_holdfast() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} flags= i\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W '" +
         names_of(app) +
         " --help' -- \"$word\")); return; fi\n"
         "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "    if [ \"${COMP_WORDS[i]}\" = -- ]; then COMPREPLY=($(compgen -c -f -- \"$word\")); return; fi\n"
         "  done\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases(app, "flags='", "'") +
         "  esac\n"
         "  [ \"${COMP_WORDS[1]}\" != completion ] || flags=\"$flags bash zsh fish\"\n"
         "  COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "}\n"
         "complete -F _holdfast holdfast";
}

std::string for_zsh(const CLI::App& app) {
  return "#compdef holdfast\n"
         "_holdfast() {\n"
         "  local -a flags\n"
         "  if (( CURRENT == 2 )); then compadd -- " +
         names_of(app) +
         " --help; return; fi\n"
         "  if (( ${words[(I)--]} > 0 && ${words[(I)--]} < CURRENT )); then _normal; return; fi\n"
         "  case ${words[2]} in\n" +
         cases(app, "flags=(", ")") +
         "  esac\n"
         "  [[ ${words[2]} == completion ]] && flags+=(bash zsh fish)\n"
         "  compadd -- $flags\n"
         "}\n"
         "[ \"$funcstack[1]\" != _holdfast ] || _holdfast\n"  // the file is autoloaded: this is the first call
         "compdef _holdfast holdfast";
}

std::string fish_text(std::string_view text) {
  std::string quoted = "'";
  for (const char byte : text) {
    if (byte == '\'' || byte == '\\') quoted += '\\';
    quoted += byte;
  }
  return quoted + '\'';
}

std::string for_fish(const CLI::App& app) {
  std::string text = "complete -c holdfast -f";
  for (const auto* command : subcommands(app)) {
    text += "\ncomplete -c holdfast -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            fish_text(command->get_description());
    for (const auto* option : command->get_options()) {
      std::string names;
      for (const auto& name : option->get_lnames()) names += " -l " + name;
      for (const auto& name : option->get_snames()) names += " -s " + name;
      if (!names.empty())
        text += "\ncomplete -c holdfast -n '__fish_seen_subcommand_from " + command->get_name() + "'" + names + " -d " +
                fish_text(option->get_description());
    }
  }
  return text + "\ncomplete -c holdfast -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'";
}

}  // namespace

std::span<const help_section> help_sections() noexcept {
  static constexpr help_line stuck[] = {
      {"holdfast list", "the locks that are held; names without the key_prefix of the URL"},
      {"holdfast inspect NAME", "holder, process and TTL; some seconds later a live holder has raised the TTL"},
      {"holdfast free NAME",
       "wakes the next waiter; the holder learns of it when it renews, within a third of its TTL"},
      {"holdfast doctor", "if these fail: looks for the fault in server, network and permissions"},
  };
  static constexpr help_line variables[] = {
      {"HOLDFAST_URL", "where the locks are: redis://redis.example:6379/0?key_prefix=app: Default: redis://localhost"},
      {"HOLDFAST_USER", "ACL user"},
      {"HOLDFAST_PASSWORD", "its password"},
      {"HOLDFAST_SENTINEL_PASSWORD", "that of the sentinels"},
      {"NO_COLOR", "no colours on a terminal"},
  };
  static constexpr help_line statuses[] = {
      {"0", "done; of run: its command ended with 0"},
      {"1, 2", "of doctor: the worst line is a WARN, a FAIL"},
      {"64", "the command line is wrong"},
      {"65", "the key is no lock, and was not changed"},
      {"69", "Redis is unreachable, or refuses to write for now"},
      {"70", "an internal error"},
      {"71", "of serve: the port is taken"},
      {"74", "the output cannot be written"},
      {"75", "the lock is busy"},
      {"77", "wrong password, or a missing permission"},
      {"78", "a wrong setting, or a server of another kind"},
      {"79", "the lock was lost"},
      {"126, 127", "of run: the command cannot be executed, is not found"},
      {"128 + N", "of run: the command was killed by signal N, or this signal came before it began"},
  };
  static constexpr help_section all[] = {
      {"When a lock is stuck", stuck}, {"Environment", variables}, {"Exit status", statuses}};
  return all;
}

int print_manual(const CLI::App& app) {
  std::string text = ".TH HOLDFAST 1 \"\" \"holdfast " + std::string(holdfast::version) +
                     "\"\n.SH NAME\nholdfast \\- " + troff(app.get_description()) +
                     "\n.SH SYNOPSIS\n.B holdfast\n.I COMMAND\n[options]\n.SH COMMANDS\n";
  for (const auto* command : subcommands(app)) text += section_of(*command);
  for (const auto& [title, lines] : help_sections()) {
    text += ".SH " + upper_case(title) + '\n';
    for (const auto& line : lines) text += ".TP\n.B " + troff(line.title) + '\n' + troff(line.text) + '\n';
  }
  text += ".SH SEE ALSO\n.BR flock (1)";
  print(text);
  return done;
}

int print_completion(const CLI::App& app, const std::string& shell) {
  print(shell == "bash" ? for_bash(app) : shell == "zsh" ? for_zsh(app) : for_fish(app));
  return done;
}

}  // namespace holdfast::cli
