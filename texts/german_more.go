package texts

// germanMore has further texts in German: what operators read, buttons, forms and approvals.
var germanMore = map[string]string{
	"Approve": "Genehmigen",

	"Only an owner changes roles, or `claybot people role` on the machine of this bot.":                                                          "Rollen ändert nur ein Eigentümer, oder `claybot people role` auf dem Rechner dieses Bots.",
	"Name a person by a stable id, and their role: owner, operator or user. For example: /pair role telegram:123456 operator.":                   "Nenne eine Person mit einer festen ID, und ihre Rolle: owner, operator oder user. Zum Beispiel: /pair role telegram:123456 operator.",
	"No role is changed on the page. Write this to the bot in a chat app, as an owner, or use `claybot people role` on the machine of this bot.": "Auf der Seite wird keine Rolle geändert. Schreib das dem Bot in einer Chat-App, als Eigentümer, oder nutze `claybot people role` auf dem Rechner dieses Bots.",
	"They are the last owner. Make another person an owner first.":                                                                               "Das ist der letzte Eigentümer. Mach zuerst eine andere Person zum Eigentümer.",
	"I can't take that role: the configuration names them in operators.":                                                                         "Diese Rolle kann ich nicht nehmen: Die Konfiguration nennt die Person in operators.",
	"The page and the terminal always belong to an owner.":                                                                                       "Die Seite und das Terminal gehören immer einem Eigentümer.",
	"They have no access. Give it first, for example with /allow.":                                                                               "Die Person hat keinen Zugang. Gib ihn zuerst, zum Beispiel mit /allow.",
	"This is not the id of a person.":                                                                                                            "Das ist nicht die ID einer Person.",
	"/pair role: give a person the role owner, operator or user":                                                                                 "/pair role: einer Person die Rolle owner, operator oder user geben",
	"This may be the id of a channel: no person with this id has written to me. Ask them to write to me first.":                                  "Das kann die ID eines Kanals sein: Keine Person mit dieser ID hat mir geschrieben. Bitte sie, mir zuerst zu schreiben.",
	"%s is an owner now.":                     "%s ist jetzt Eigentümer.",
	"%s is an operator now.":                  "%s ist jetzt Betreiber.",
	"%s is a user now, without other rights.": "%s ist jetzt Nutzer, ohne weitere Rechte.",

	"I can't act for a business account: I get none of its chats, and answer only what you write to me directly. You can disconnect me in Telegram's settings.": "Ich kann nicht für ein Geschäftskonto handeln: Ich bekomme keinen seiner Chats und antworte nur auf das, was du mir direkt schreibst. Du kannst mich in den Einstellungen von Telegram trennen.",

	"Right now":                "Gerade jetzt",
	"Your conversations":       "Deine Gespräche",
	"Your tasks and reminders": "Deine Aufgaben und Erinnerungen",
	"Your usage":               "Dein Verbrauch",
	"Your privacy":             "Deine Privatsphäre",
	"Your settings":            "Deine Einstellungen",
	"%d conversation, the last message %s|%d conversations, the last message %s": "%d Gespräch, die letzte Nachricht %s|%d Gespräche, die letzte Nachricht %s",
	"You have not written to me yet. Send me a message to begin.":                "Du hast mir noch nicht geschrieben. Schick mir eine Nachricht, um anzufangen.",
	"You have no access to this app.":                                            "Du hast keinen Zugang zu dieser App.",

	"You can ask me, for example:": "Du kannst mich zum Beispiel fragen:",

	"What can you do?":                               "Was kannst du?",
	"What can you do for me?":                        "Was kannst du für mich tun?",
	"What is planned?":                               "Was ist geplant?",
	"Which tasks and reminders of mine are planned?": "Welche Aufgaben und Erinnerungen von mir sind geplant?",
	"Where were we?":                                 "Wo waren wir?",
	"What did we talk about last?":                   "Worüber haben wir zuletzt gesprochen?",

	"Deny": "Ablehnen",

	"Deny with a reason…": "Mit Grund ablehnen…",

	"Approve for this session": "Für diese Sitzung genehmigen",

	"Edit": "Ändern",

	"Edit…": "Ändern…",

	"Yes": "Ja",

	"No": "Nein",

	"Done": "Fertig",

	"Skip": "Überspringen",

	"Stop": "Anhalten",
	"This answers another person, so it is not yours to stop.": "Das antwortet einer anderen Person, also hältst du es nicht an.",

	"*The code is too long for a message. It is in the attached file %s.*": "*Der Code ist zu lang für eine Nachricht. Er steht in der angehängten Datei %s.*",

	"Answer…": "Antworten…", "Answer all…": "Alle beantworten…", "Questions": "Fragen",

	"A good answer":                         "Eine gute Antwort",
	"A bad answer":                          "Eine schlechte Antwort",
	"Thank you for your feedback.":          "Danke für deine Rückmeldung.",
	"Your question":                         "Deine Frage",
	"The answer comes as a direct message.": "Die Antwort kommt als Direktnachricht.",
	"I cannot open a direct chat with you now. Try again, or write to me in direct messages.": "Ich kann gerade keinen direkten Chat mit dir öffnen. Versuche es noch einmal, oder schreib mir eine Direktnachricht.",
	"Your feedback was not recorded.": "Deine Rückmeldung wurde nicht festgehalten.",

	"A question": "Eine Frage",

	"Your answer": "Deine Antwort",

	"Send": "Senden",

	"Cancel": "Abbrechen",

	"Close": "Schließen",

	"Why not?": "Warum nicht?",

	"Arguments": "Argumente",

	"Run edited": "Geändert ausführen",

	"Choose one": "Wähle aus",

	"Choose": "Wähle aus",

	"A JSON object. What you send here is what runs.": "Ein JSON-Objekt. Was du hier sendest, wird ausgeführt.",

	"Several addresses: on lines of their own, or with commas.": "Mehrere Adressen: auf eigenen Zeilen oder mit Kommas.",

	"In your own time zone.": "In deiner Zeitzone.",

	"The answer as it stands in the question.": "Die Antwort, wie sie in der Frage steht.",

	"The answers as they stand in the question, each on a line of its own.": "Die Antworten, wie sie in der Frage stehen, jede auf einer eigenen Zeile.",

	"%s has stopped, so nothing is received or sent there. `claybot doctor` says why, and what to do.": "%s ist angehalten, dort kommt nichts an und nichts geht hinaus. Den Grund, und was zu tun ist, nennt `claybot doctor`.",

	"%s has stopped, so nothing is received or sent there: %s. `claybot doctor` says what to do.": "%s ist angehalten, dort kommt nichts an und nichts geht hinaus: %s. Was zu tun ist, sagt `claybot doctor`.",

	"its token is refused": "das Token wird abgelehnt",

	"its token is missing or not valid": "das Token fehlt oder ist ungültig",

	"Socket Mode is switched off for its app": "Socket Mode ist für die App abgeschaltet",

	"its app was removed from the workspace":              "die App wurde aus dem Workspace entfernt",
	"an intent that it needs is switched off for its app": "ein Intent, den er braucht, ist für seine App ausgeschaltet",

	"%s needs your attention: %s.":              "%s braucht deine Hilfe: %s.",
	"Next step: %s":                             "Nächster Schritt: %s",
	"claybot status shows %d more":              "claybot status zeigt %d weitere",
	"The model %s":                              "Das Modell %s",
	"The MCP server %s":                         "Der MCP-Server %s",
	"The relay %s":                              "Das Relay %s",
	"The check “%s”":                            "Die Prüfung „%s“",
	"The workspace provider %s":                 "Der Anbieter von Arbeitsumgebungen %s",
	"The time zone %s":                          "Die Zeitzone %s",
	"The process on %s":                         "Der Prozess auf %s",
	"The disk on %s":                            "Die Platte auf %s",
	"%s has room again.":                        "%s hat wieder Platz.",
	"commands on this machine are not safe":     "Befehle auf diesem Rechner sind nicht sicher",
	"the database is damaged":                   "die Datenbank ist beschädigt",
	"the history of an agent has damaged lines": "der Verlauf eines Agenten hat beschädigte Zeilen",
	"the history of an agent cannot be read":    "der Verlauf eines Agenten kann nicht gelesen werden",
	"less than 1 GiB is free":                   "weniger als 1 GiB ist frei",
	"less than 100 MiB are free":                "weniger als 100 MiB sind frei",
	"The configuration":                         "Die Konfiguration",

	"the configuration file does not exist":                                  "die Konfigurationsdatei gibt es nicht",
	"the configuration file cannot be read":                                  "die Konfigurationsdatei lässt sich nicht lesen",
	"the configuration file is not a YAML text":                              "die Konfigurationsdatei ist kein YAML-Text",
	"the file has a key that claybot does not know":                          "die Datei hat einen Schlüssel, den claybot nicht kennt",
	"the value of a setting is not valid":                                    "der Wert einer Einstellung ist ungültig",
	"a setting does not let claybot start":                                   "mit einer Einstellung kann claybot nicht starten",
	"a secret stands in the file itself":                                     "ein Geheimnis steht in der Datei selbst",
	"a token or key that the configuration names cannot be read":             "ein Token oder Schlüssel, den die Konfiguration nennt, lässt sich nicht lesen",
	"the daemon reports a fault":                                             "der Dienst meldet eine Störung",
	"a check of the daemon failed":                                           "eine Prüfung des Dienstes ist fehlgeschlagen",
	"the receiver of a relay or the collector of traces takes nothing":       "der Empfänger eines Relays oder der Traces nimmt nichts an",
	"an MCP server does not work":                                            "ein MCP-Server funktioniert nicht",
	"this machine lacks what an MCP server with where: host runs":            "diesem Rechner fehlt, was ein MCP-Server mit where: host ausführt",
	"the web page, or the listener of metrics, cannot listen at its address": "die Webseite oder der Abruf der Metriken kann an ihrer Adresse keine Verbindungen annehmen",
	"a connector does not work":                                              "eine Verbindung funktioniert nicht",
	"the service refuses a token or key":                                     "der Anbieter lehnt ein Token oder einen Schlüssel ab",
	"the server of a model does not answer":                                  "der Server eines Modells antwortet nicht",
	"the model does not answer the daemon":                                   "das Modell antwortet nicht",
	"this machine does not know a time zone":                                 "dieser Rechner kennt eine Zeitzone nicht",
	"Docker does not work":                                                   "Docker funktioniert nicht",

	"I couldn't deliver %d reply.|I couldn't deliver %d replies.": "Ich konnte %d Antwort nicht zustellen.|Ich konnte %d Antworten nicht zustellen.",

	"`claybot outbox list --state failed` shows what failed and why, and `claybot outbox retry` sends it again.": "`claybot outbox --state failed` zeigt, was fehlschlug und warum, und `claybot outbox retry` schickt es noch einmal.",

	"I can't write to %d group on %s any more.|I can't write to %d groups on %s any more.": "In %d Gruppe auf %s kann ich nicht mehr schreiben.|In %d Gruppen auf %s kann ich nicht mehr schreiben.",

	"The configuration names %s, which is now %s.":                                             "Die Konfiguration nennt %s, das jetzt %s heißt.",
	"Its settings hold for the new name as well. Please change the name in the configuration.": "Ihre Einstellungen gelten auch für den neuen Namen. Bitte ändere den Namen in der Konfiguration.",
	"The scheduled task “%s” can't reach its chat any more.":                                   "Die geplante Aufgabe „%s“ erreicht ihren Chat nicht mehr.",

	"`claybot status` lists the routes and why.": "`claybot status` nennt die Chats und den Grund.",

	"%d budget is used up and stops work.|%d budgets are used up and stop work.": "%d Budget ist aufgebraucht und hält Arbeit an.|%d Budgets sind aufgebraucht und halten Arbeit an.",

	"`claybot budgets list` shows which, and `claybot budgets extend` raises one.": "`claybot budgets list` zeigt, welche, und `claybot budgets extend` erhöht eines.",

	"The disk with my data was full or read-only from %s on, so I couldn't store messages for a while. Most of them wait at their platforms and come again. Please keep more room: `claybot status` shows how much is left.": "Die Platte mit meinen Daten war ab %s voll oder schreibgeschützt, sodass ich eine Zeit lang keine Nachrichten speichern konnte. Die meisten warten bei ihren Plattformen und kommen wieder. Bitte halte mehr Platz frei: `claybot status` zeigt, wie viel noch frei ist.",

	"My clock was wrong, so I don't know how long I couldn't reach %s before %s. Messages sent there before then may be missing. I told the people who wrote lately.": "Meine Uhr ging falsch, deshalb weiß ich nicht, wie lange ich %s vor %s nicht erreichen konnte. Nachrichten von davor können fehlen. Wer in letzter Zeit schrieb, weiß das von mir.",

	"I couldn't reach %s from %s to %s. Messages sent there during that time may be missing. I told the people who wrote lately.": "Ich konnte %s von %s bis %s nicht erreichen. Nachrichten aus dieser Zeit können fehlen. Wer in letzter Zeit schrieb, weiß das von mir.",

	"Approve this action: %s": "Diese Aktion genehmigen: %s",

	"Run this command?": "Diesen Befehl ausführen?",

	"with": "mit",

	"It is about %s.": "Es geht um %s.",

	"What it is about is unknown now.": "Worum es geht, ist gerade unbekannt.",

	"Why: %s.": "Grund: %s.",

	"The agent says: %s": "Der Agent sagt: %s",

	"Asked by the subagent, which works for %s.": "Es fragt der Subagent, der für %s arbeitet.",

	"Asked by the subagent %s, which works for %s.": "Es fragt der Subagent %s, der für %s arbeitet.",

	"Asked by the task of %s.": "Es fragt die Aufgabe von %s.",

	"Asked by the task %s of %s.": "Es fragt die Aufgabe %s von %s.",

	"Asked by the heartbeat.": "Es fragt der Heartbeat.",

	"Asked by the agent of %s.": "Es fragt der Agent von %s.",

	"Asked by the agent of %s in %s.": "Es fragt der Agent von %s in %s.",

	"It runs on %s, outside of the workspace.": "Es läuft auf %s, außerhalb des Arbeitsbereichs.",

	"It runs in the workspace (%s).": "Es läuft im Arbeitsbereich (%s).",

	"it changes rights or settings": "es ändert Rechte oder Einstellungen",

	"this tool asks before each call": "dieses Werkzeug fragt vor jedem Aufruf",

	"a rule requires an approval for this action": "eine Regel verlangt eine Genehmigung für diese Aktion",

	"no rule allows this action": "keine Regel erlaubt diese Aktion",

	"it acts later or through other agents, and this conversation holds untrusted content": "es wirkt später oder durch andere Agenten, und in diesem Gespräch steht Fremdes, dem nicht zu trauen ist",

	"it reaches a destination that is on no list, and this conversation holds untrusted content": "es erreicht ein Ziel, das auf keiner Liste steht, und in diesem Gespräch steht Fremdes, dem nicht zu trauen ist",

	"it reaches a destination that is on no list, and this conversation holds what not everybody may read": "es erreicht ein Ziel, das auf keiner Liste steht, und in diesem Gespräch steht, was nicht alle lesen dürfen",

	"it reaches a destination that is on no list": "es erreicht ein Ziel, das auf keiner Liste steht",

	"; an approval also covers the other %d results of this search, on the same host": "; eine Genehmigung gilt auch für die übrigen %d Treffer dieser Suche, auf demselben Host",

	"; an approval also covers the other %d results of this search, on %s": "; eine Genehmigung gilt auch für die übrigen %d Treffer dieser Suche, auf %s",

	"; the arguments are those of %s": "; die Argumente sind von %s",

	"Shall I ask an operator to extend it?": "Soll ich einen Betreiber bitten, es zu erhöhen?",

	"It was not extended.": "Es wurde nicht erhöht.",

	"Extend %s by %s? So far %s, and the next step needs at least %s.": "Soll %s um %s erhöht werden? Bisher: %s, und der nächste Schritt braucht mindestens %s.",

	"Your run waits for it.": "Dein Lauf wartet darauf.",

	"A run of %s waits for it.": "Ein Lauf von %s wartet darauf.",

	"the budget of one run": "das Budget eines Laufs",

	"the budget of a run of %s": "das Budget eines Laufs von %s",

	"the budget of all agents": "das Budget aller Agenten",

	"the budget of this agent": "das Budget dieses Agenten",

	"the budget of this channel": "das Budget dieses Kanals",

	"the budget of this task": "das Budget dieser Aufgabe",

	"your budget": "dein Budget",

	"a budget": "ein Budget",

	"the budget of the agent of %s": "das Budget des Agenten von %s",

	"the budget of the agent %s": "das Budget des Agenten %s",

	"the budget of the channel %s": "das Budget des Kanals %s",

	"the budget of the task %s": "das Budget der Aufgabe %s",

	"the budget of the token %s": "das Budget des Tokens %s",

	"the budget of %s": "das Budget von %s",

	"%s for today": "%s für heute",

	"%s for this month": "%s für diesen Monat",

	"%s for %s": "%s für %s",

	"the arguments must be a JSON object": "die Argumente müssen ein JSON-Objekt sein",

	"Cause: %s.": "Ursache: „%s“.",

	"Fix: %s.": "Abhilfe: %s.",

	"the built-in demo model": "das eingebaute Demo-Modell",

	"name a model in CLAYBOT_MODEL or in the configuration; docs/configuration.md shows how": "nenne ein Modell in CLAYBOT_MODEL oder in der Konfiguration; docs/configuration.md zeigt, wie",

	"/new begins a new conversation; a model with a larger window avoids this": "/new beginnt ein neues Gespräch; ein Modell mit größerem Fenster vermeidet das",

	"ask for less at once, or raise the limit in the profile of the agent": "verlange weniger auf einmal, oder erhöhe die Grenze im Profil des Agenten",

	"correct the prompt of the profile; `claybot doctor` names it": "berichtige den Prompt des Profils; `claybot doctor` nennt ihn",

	"check the API key and the account: OPENAI_API_KEY or ANTHROPIC_API_KEY, or `model` in the configuration; then restart claybot or reload it": "prüfe den API-Schlüssel und das Konto: OPENAI_API_KEY oder ANTHROPIC_API_KEY, oder `model` in der Konfiguration; starte claybot dann neu oder lade neu",

	"check the name of the model (CLAYBOT_MODEL) and its address (%s); then restart claybot or reload it": "prüfe den Namen des Modells (CLAYBOT_MODEL) und seine Adresse (%s); starte claybot dann neu oder lade neu",

	"look at the limits and the credit of the account at the provider; the next message tries again": "sieh nach den Grenzen und dem Guthaben des Kontos beim Anbieter; die nächste Nachricht versucht es wieder",

	"wait: the provider has a problem of its own; the next message tries again": "warte: Der Anbieter hat selbst ein Problem; die nächste Nachricht versucht es wieder",

	"check that this machine reaches the address of the model (%s); the next message tries again": "prüfe, ob dieser Rechner die Adresse des Modells erreicht (%s); die nächste Nachricht versucht es wieder",

	"check the settings of the model: CLAYBOT_MODEL, %s and `model` in the configuration": "prüfe die Einstellungen des Modells: CLAYBOT_MODEL, %s und `model` in der Konfiguration",

	"Asked by the agent that all members of %s share, for %s.": "Es fragt der Agent, den alle in %s gemeinsam haben, für %s.",

	"the group": "die Gruppe",

	"Files that you sent me: %s.":             "Dateien, die du mir geschickt hast: %s.",
	"Files that you sent me: %[1]s of %[2]s.": "Dateien, die du mir geschickt hast: %[1]s von %[2]s.",

	"I've left out %[1]s, because the files that you sent me take up the %[2]s that they may take. An operator can raise `limits.files_per_owner`, or delete agents that you no longer need with `claybot agents delete`.": "Ich habe %[1]s weggelassen, weil die Dateien, die du mir geschickt hast, die erlaubten %[2]s belegen. Ein Betreiber kann `limits.files_per_owner` erhöhen oder mit `claybot agents delete` Agenten löschen, die du nicht mehr brauchst.",
}
